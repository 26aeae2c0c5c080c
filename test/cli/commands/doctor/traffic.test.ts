import test from 'ava';
import { TRAFFIC_CHECK } from '../../../../cli/commands/doctor/check-traffic.ts';
import { findXfrmFault } from '../../../../inspection/faults/find-xfrm-fault.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { XfrmPolicyMessage } from '../../../../netlink/xfrm-policy-message.ts';
import { NO_TRAFFIC } from '../../../inspection/node/no-traffic.ts';
import { doctorFacts, nodeWith } from './facts.ts';
import { action, attribute, program, programFilter, words } from './traffic-bytes.ts';

// What others put on links, as the kernel lists it. The node's eth1 is an ENI.

const EGRESS = 0xfffffff3;
const MESSAGE = { handle: 0x80010000, parent: 0xffffffff, info: 2, protocol: 3, priority: 1, unknown: [] };

/** Findings about the ENI with a filter, or with a discipline. */
function foundWith(what: { kind: string; options?: Uint8Array }, as: 'filter' | 'qdisc'): readonly string[] {
  const node = nodeWith((host) => {
    const eni = host.links.find(({ ifname }) => ifname === 'eth1');
    if (eni === undefined) throw new Error('the node has no eth1');
    const message = { ...MESSAGE, ...(as === 'filter' ? { parent: EGRESS } : {}), ...what, ifindex: eni.ifindex };
    return {
      links: [
        ...host.links,
        { ...eni, ifindex: 77, ifname: 'ifb0', kind: 'ifb' },
        { ...eni, ifindex: 78, ifname: 'tap0_kata', kind: 'tun' },
      ],
      traffic: { ...NO_TRAFFIC, ...(as === 'filter' ? { filters: known([message]) } : { qdiscs: known([message]) }) },
    };
  });
  const verdict = TRAFFIC_CHECK.evaluate(doctorFacts({ node }));
  if (verdict.kind === 'skipped') throw new Error(verdict.why);
  return verdict.findings.map(({ id, severity }) => `${id} ${severity}`);
}

const FILTERS = [
  [
    'an action that drops',
    { kind: 'matchall', options: attribute(2, action('gact', 1, 0, 2, 1, 1)) },
    ['link-tc error'],
  ],
  ['an action that lets pass', { kind: 'matchall', options: attribute(2, action('gact', 1, 0, 0, 1, 1)) }, []],
  [
    'a redirection to another link',
    { kind: 'u32', options: attribute(7, action('mirred', 1, 0, 4, 1, 1, 1, 2)) },
    ['link-tc error'],
  ],
  ['a redirection to an ifb link', { kind: 'u32', options: attribute(7, action('mirred', 1, 0, 4, 1, 1, 1, 77)) }, []],
  [
    'a redirection to a tap of Kata',
    { kind: 'u32', options: attribute(7, action('mirred', 1, 0, 4, 1, 1, 1, 78)) },
    [],
  ],
  ['a copy to another link', { kind: 'u32', options: attribute(7, action('mirred', 1, 0, 3, 1, 1, 2, 2)) }, []],
  ['a program of another program', { kind: 'bpf', options: program('filter.o:[tc]') }, ['link-tc error']],
  ['a program of Cilium', { kind: 'bpf', options: program('cil_from_netdev-eth1') }, []],
  ['a program of Calico', { kind: 'bpf', options: program('cali_tc_preamble') }, []],
  ['our own program', programFilter(0, 'egress', 'tke_fast'), []],
  ['a program of our name at a place of others', { kind: 'bpf', options: program('tke_fast') }, ['link-tc error']],
  ['a chain without a filter', { kind: 'bpf' }, []],
] as const;

for (const [name, filter, found] of FILTERS) {
  test(`traffic: finds ${found.join() || 'nothing'} of a filter with ${name}`, (t) => {
    t.deepEqual(foundWith(filter, 'filter'), [...found]);
  });
}

const tbf = (rate: number, bufferTicks: number): Uint8Array =>
  attribute(1, words(0, 0, rate, 0, 0, 0, 3_000, bufferTicks, 0));
const SECOND = 1e9 / 64;

const QDISCS = [
  ['fq_codel', { kind: 'fq_codel', options: words(1) }, []],
  ['blackhole', { kind: 'blackhole' }, ['link-qdisc error']],
  ['netem that drops all', { kind: 'netem', options: words(0, 1_000, 0xffffffff, 0, 0, 0) }, ['link-qdisc error']],
  [
    'netem that drops a tenth',
    { kind: 'netem', options: words(0, 1_000, 429_496_729, 0, 0, 0) },
    ['link-qdisc warning'],
  ],
  ['netem that delays', { kind: 'netem', options: words(5, 1_000, 0, 0, 0, 0) }, []],
  ['tbf with a burst of ten packets', { kind: 'tbf', options: tbf(125_000, 0.12 * SECOND) }, []],
  ['tbf with a burst below a packet', { kind: 'tbf', options: tbf(125_000, 0.004 * SECOND) }, ['link-qdisc error']],
  ['tbf with 100 bytes a second', { kind: 'tbf', options: tbf(100, 40 * SECOND) }, ['link-qdisc error']],
] as const;

for (const [name, qdisc, found] of QDISCS) {
  test(`traffic: finds ${found.join() || 'nothing'} of ${name}`, (t) => {
    t.deepEqual(foundWith(qdisc, 'qdisc'), [...found]);
  });
}

const BLOCK: XfrmPolicyMessage = {
  ...{ src: '10.0.1.0/24', dst: '0.0.0.0/0', family: 2, proto: 0, dportMask: 0, sportMask: 0, ifindex: 0 },
  ...{ priority: 0, index: 1, dir: 2, action: 1, flags: 0, share: 0, unknown: [] },
};
const PROTECT: Partial<XfrmPolicyMessage> = { action: 0, templates: new Uint8Array(64) };

const POLICIES = [
  ['blocks the Pod', [BLOCK], 'error'],
  ['blocks another network', [{ ...BLOCK, src: '10.9.0.0/24' }], undefined],
  ['blocks in another direction', [{ ...BLOCK, dir: 0 }], undefined],
  ['blocks one port', [{ ...BLOCK, proto: 6, dportMask: 0xffff }], undefined],
  ['blocks a mark', [{ ...BLOCK, mark: { value: 1, mask: 1 } }], undefined],
  ['blocks what another link brings', [{ ...BLOCK, ifindex: 9 }], undefined],
  ['protects', [{ ...BLOCK, ...PROTECT }], 'warning'],
  [
    'allows without protection, before one that blocks',
    [
      { ...BLOCK, action: 0 },
      { ...BLOCK, priority: 7 },
    ],
    undefined,
  ],
] as const;

for (const [name, policies, severity] of POLICIES) {
  test(`findXfrmFault: finds ${severity ?? 'nothing'} where a policy ${name}`, (t) => {
    const packet = { dir: 'fwd', src: '10.0.1.7', dst: '192.0.2.1', ifindex: 3 } as const;
    const found = findXfrmFault({ traffic: { ...NO_TRAFFIC, policies: known([...policies]) } }, packet, 'the node');
    t.is(found?.severity, severity);
  });
}

test('findXfrmFault: is a warning where the other address is any, and the policy is for some', (t) => {
  const narrow = known([{ ...BLOCK, dst: '192.0.2.0/24' }]);
  t.is(
    findXfrmFault({ traffic: { ...NO_TRAFFIC, policies: narrow } }, { dir: 'fwd', src: '10.0.1.7' }, 'x')?.severity,
    'warning',
  );
  const wide = known([BLOCK]);
  t.is(
    findXfrmFault({ traffic: { ...NO_TRAFFIC, policies: wide } }, { dir: 'fwd', src: '10.0.1.7' }, 'x')?.severity,
    'error',
  );
});
