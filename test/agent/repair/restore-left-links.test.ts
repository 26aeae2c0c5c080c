import test from 'ava';
import type { FoundState } from '../../../agent/node/found-state.ts';
import type { HostLink } from '../../../agent/node/host-link.ts';
import { type LeftLinksView, restoreLeftLinks } from '../../../agent/repair/restore-left-links.ts';
import { EMPTY_STATE, type HostState } from '../../../dataplane/desired.ts';
import { renderOperation } from '../../../dataplane/operation.ts';
import { forwarding, ipForward, rpFilter, sysctlName, tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';

const DOCKER0: HostLink = { ifindex: 5, ifname: 'docker0', mtu: 1400, isUp: true };
const RP_FILTER = { path: rpFilter('docker0').path, found: '1', set: '2' };
const LINK = { ifindex: 5, ifname: 'docker0', found: { mtu: 1500 }, set: { mtu: 1400 } };
const ADDRESS = { ifindex: 5, ifname: 'docker0', prefix: '10.0.2.99/32' };
const FOUND: FoundState = { bootId: 'boot-1', sysctls: [RP_FILTER], links: [LINK], addresses: [ADDRESS] };
const SET = { 'net.ipv4.conf.docker0.rp_filter': '2' };

function viewOf(links: readonly HostLink[], sysctls: Record<string, string>, addresses: readonly string[]) {
  const view: LeftLinksView = {
    links,
    addressesOn: (ifindex) => (ifindex === 5 ? addresses : []),
    sysctl: (path) => sysctls[sysctlName({ path })],
    canKeepConnections: () => true,
  };
  return view;
}

const AS_SET = viewOf([DOCKER0], SET, ['172.17.0.1/16', '10.0.2.99/32']);

function decide(
  view: LeftLinksView,
  found: FoundState = FOUND,
  desired: Partial<HostState> = {},
  inUse: readonly number[] = [],
) {
  const { operations, over } = restoreLeftLinks(found, { ...EMPTY_STATE, ...desired }, new Set(inUse), view);
  return { requests: operations.map(renderOperation), over };
}

test('restoreLeftLinks: restores a link that is no ENI any more, and forgets what is restored', (t) => {
  t.deepEqual(decide(AS_SET), {
    requests: [
      'ip address del 10.0.2.99/32 dev docker0',
      'sysctl -w net.ipv4.conf.docker0.rp_filter=1',
      'ip link set dev docker0 mtu 1500',
    ],
    over: [],
  });
  const restored = viewOf([{ ...DOCKER0, mtu: 1500 }], { 'net.ipv4.conf.docker0.rp_filter': '1' }, []);
  t.deepEqual(decide(restored), { requests: [], over: [ADDRESS, RP_FILTER, LINK] });
});

test('restoreLeftLinks: leaves what others changed since, and forwarding', (t) => {
  const path = forwarding(4, 'docker0').path;
  const shared = { path, found: '0', set: '1' };
  const found = { ...FOUND, sysctls: [RP_FILTER, shared], links: [], addresses: [] };
  const view = viewOf([DOCKER0], { [sysctlName({ path: RP_FILTER.path })]: '0', [sysctlName({ path })]: '1' }, []);
  t.deepEqual(decide(view, found), { requests: [], over: [RP_FILTER, shared] });
});

test('restoreLeftLinks: restores a setting of the node that no plan has any more, as that of the fast path', (t) => {
  const path = tcpBeLiberal().path;
  const entry = { path, found: '0', set: '1' };
  const found = { bootId: 'boot-1', sysctls: [entry], links: [] };
  const name = sysctlName({ path });
  const planned = { sysctls: [{ key: tcpBeLiberal(), value: '1' }] };
  t.deepEqual(decide(viewOf([], { [name]: '1' }, []), found, planned), { requests: [], over: [] });
  t.deepEqual(decide(viewOf([], { [name]: '1' }, []), found), { requests: [`sysctl -w ${name}=0`], over: [] });
  t.deepEqual(decide(viewOf([], { [name]: '0' }, []), found), { requests: [], over: [entry] });
  t.deepEqual(decide(viewOf([], {}, []), found), { requests: [], over: [entry] }, 'its module is gone');
  const [operation] = restoreLeftLinks(found, EMPTY_STATE, new Set(), viewOf([], { [name]: '1' }, [])).operations;
  t.like(operation, { kind: 'set-sysctl', keepsConnections: true });
  const cannot = { ...viewOf([], { [name]: '1' }, []), canKeepConnections: () => false };
  t.deepEqual(decide(cannot, found), { requests: [], over: [] }, 'connections would stop: it stays, and is known');
});

test('restoreLeftLinks: touches no link that is planned or otherwise in use, and no setting of the node', (t) => {
  const link = { ifindex: 5, ifname: 'docker0' };
  const planned = { links: [link], addresses: [ADDRESS] };
  t.deepEqual(decide(AS_SET, FOUND, planned), { requests: [], over: [] }, 'an ENI');
  t.deepEqual(decide(AS_SET, FOUND, {}, [5]), { requests: [], over: [] }, 'the primary interface');
  const desired = { sysctls: [{ key: rpFilter('docker0'), value: '2' }] };
  t.false(
    decide(AS_SET, FOUND, desired).requests.some((request) => request.startsWith('sysctl')),
    'a planned setting',
  );
  const ofNode = [
    { path: ipForward().path, found: '0', set: '1' },
    { path: rpFilter('all').path, found: '1', set: '0' },
  ];
  t.deepEqual(decide(AS_SET, { ...FOUND, sysctls: ofNode, links: [], addresses: [] }), { requests: [], over: [] });
});

test('restoreLeftLinks: removes an address of its own that an ENI has no more', (t) => {
  const planned = { links: [{ ifindex: 5, ifname: 'docker0' }], addresses: [{ ...ADDRESS, prefix: '10.0.2.2/32' }] };
  t.deepEqual(decide(AS_SET, FOUND, planned).requests, ['ip address del 10.0.2.99/32 dev docker0']);
});

test('restoreLeftLinks: a link that went away, or whose index another has, needs nothing', (t) => {
  t.deepEqual(decide(viewOf([], {}, [])), { requests: [], over: [ADDRESS, RP_FILTER] });
  const other = viewOf([{ ...DOCKER0, ifname: 'eth7' }], SET, ['10.0.2.99/32']);
  t.deepEqual(decide(other), { requests: [], over: [ADDRESS, RP_FILTER] });
});
