import test from 'ava';
import { findFullTable } from '../../../inspection/faults/find-neighbour-fault.ts';
import { findFullConntrack } from '../../../inspection/faults/find-setting-fault.ts';
import type { NeighMessage } from '../../../netlink/neigh-message.ts';

// Limits of the whole machine: a test that reached them would stop all others. explain uses these; doctor reads counters.

test('findFullConntrack: names a table without room, and nothing else', (t) => {
  const at = (count: string, max: string) =>
    findFullConntrack({
      sysctls: new Map([
        ['net.netfilter.nf_conntrack_count', count],
        ['net.netfilter.nf_conntrack_max', max],
      ]),
    });
  t.like(at('262144', '262144'), { id: 'conntrack-pressure', severity: 'error' });
  t.is(at('262143', '262144'), undefined);
  t.is(at('9', '0'), undefined, '0 is no limit');
  t.is(findFullConntrack({ sysctls: new Map() }), undefined, 'a kernel without connection tracking');
});

const REACHABLE = 2;
const FAILED = 0x20;
const PERMANENT = 0x80;

const neigh = (dst: string, state: number): NeighMessage => ({
  ...{ family: 2, ifindex: 3, state, flags: 0, type: 1, dst, unknown: [] },
  ...(state === FAILED ? {} : { lladdr: '02:00:00:00:00:01' }),
});

test('findFullTable: names a neighbour table without room for a neighbour that is needed', (t) => {
  const sysctls = new Map([['net.ipv4.neigh.default.gc_thresh3', '3']]);
  const learned = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => neigh(ip, REACHABLE));
  const of = (neighs: readonly NeighMessage[], ip = '10.0.0.9') =>
    findFullTable({ neighs, sysctls }, { ip, ifindex: 3 });
  t.like(of(learned), { id: 'neigh-pressure', severity: 'error' });
  t.like(of([...learned, neigh('10.0.0.9', FAILED)]), { id: 'neigh-pressure' });
  t.is(of(learned, '10.0.0.2'), undefined, 'this one is known');
  t.is(of(learned.slice(1)), undefined, 'there is room');
  t.is(of([...learned.slice(1), neigh('10.0.0.7', PERMANENT)]), undefined, 'permanent entries do not count');
  t.is(of(learned, 'fd00::9'), undefined, 'the limit of IPv6 is another one');
});
