import test from 'ava';
import { planTakeover, type TakeoverSources } from '../../../agent/adopt/plan-takeover.ts';
import type { PodInterface } from '../../../agent/node/bridge-evidence.ts';

const PORT = { ifindex: 20, name: 'veth1', mac: '02:00:00:00:00:20', mtu: 1450 };
const INSIDE: PodInterface = {
  ...{ netns: '/run/netns/c1', ifName: 'eth0', ifindex: 3, mac: '02:00:00:00:00:03', peerIfindex: 20 },
  addresses: [{ ip: '192.168.0.66', prefixLength: 26 }],
  gateway: '192.168.0.65',
};
const FILE = { ip: '192.168.0.66', containerId: 'c1', ifName: 'eth0' };

function takeover(change: Partial<TakeoverSources> = {}) {
  return planTakeover({
    ...{ ports: [PORT], interfaces: [INSIDE], reservations: [FILE], sandboxes: [], netnsById: new Map(), leases: [] },
    ...change,
  });
}

test('planTakeover: a Pod on the bridge becomes a lease with its own block, link and MAC', (t) => {
  const { pods, refused, unexplained } = takeover({
    sandboxes: [{ id: 'c1', state: 'ready', podName: 'p', podNamespace: 'ns', podUid: 'u' }],
    netnsById: new Map([['c1', '/run/netns/c1']]),
  });
  t.deepEqual(
    pods.map(({ lease }) => lease),
    [
      {
        ...{ containerId: 'c1', ifName: 'eth0', podNamespace: 'ns', podName: 'p', podUid: 'u', network: '' },
        ...{ plugin: 'bridge', netns: '/run/netns/c1', eniId: 'pod-cidr:192.168.0.64/26', state: 'active' },
        addresses: [{ ip: '192.168.0.66', family: 4, eniId: 'pod-cidr:192.168.0.64/26', assignmentId: '' }],
        hostVeth: { name: 'veth1', mac: '02:00:00:00:00:20', ifindex: 20 },
        podMac: '02:00:00:00:00:03',
        block: { cidr: '192.168.0.64/26', wiring: 'bridge' },
        ...{ mtu: 1450, createdAtMs: 0 },
      },
    ],
  );
  t.deepEqual([refused, unexplained], [[], []]);
});

test('planTakeover: without a file the runtime says whose it is, without a runtime the file; without both nobody', (t) => {
  const owner = (change: Partial<TakeoverSources>) => takeover(change).pods[0]?.lease.containerId;
  t.is(owner({ reservations: [], netnsById: new Map([['c9', '/run/netns/c1']]) }), 'c9');
  t.is(owner({}), 'c1');
  t.is(owner({ reservations: [] }), 'unknown-192.168.0.66');
  // The file was left by a sandbox that is gone, and host-local gave the address again.
  t.is(owner({ netnsById: new Map([['c9', '/run/netns/c1']]) }), 'c9');
});

test('planTakeover: what has a lease is left alone', (t) => {
  const [taken] = takeover().pods;
  if (taken === undefined) return t.fail();
  t.deepEqual(takeover({ leases: [taken.lease] }), { pods: [], refused: [], unexplained: [], unseen: [] });
});

test('planTakeover: a reservation that no address in a namespace explains stays unexplained', (t) => {
  const { unexplained, unseen } = takeover({ interfaces: [] });
  t.deepEqual(unexplained, [FILE]);
  t.is(unseen.length, 1, 'a Pod may live behind the port');
  // A link of the same index somewhere else is no port.
  t.deepEqual(takeover({ interfaces: [{ ...INSIDE, peerIfindex: 21 }] }).unexplained, [FILE]);
});

test('planTakeover: a Pod whose gateway is not the first address of its block keeps its address, and is not taken', (t) => {
  const why = (change: Partial<PodInterface>) => takeover({ interfaces: [{ ...INSIDE, ...change }] }).refused[0]?.why;
  t.is(why({ gateway: '192.168.0.126' }), 'eth0 of /run/netns/c1 has the gateway 192.168.0.126, and not 192.168.0.65');
  const { gateway: _none, ...bare } = INSIDE;
  const { refused, unexplained } = takeover({ interfaces: [bare] });
  t.regex(refused[0]?.why ?? '', /no default route/);
  t.deepEqual(unexplained, []);
});

test('planTakeover: of two interfaces with the same peer the one with a reserved address is the Pod', (t) => {
  const other = { ...INSIDE, netns: '/run/netns/nested', addresses: [{ ip: '192.168.0.67', prefixLength: 26 }] };
  const { pods } = takeover({ interfaces: [other, INSIDE] });
  t.deepEqual(
    pods.map(({ lease }) => lease.addresses[0]?.ip),
    ['192.168.0.66'],
  );
});

test('planTakeover: the port of an ADD that was interrupted is ours, although its lease has no index yet', (t) => {
  const [taken] = takeover().pods;
  if (taken === undefined) return t.fail();
  const { ifindex: _none, ...hostVeth } = taken.lease.hostVeth ?? { name: '', mac: '' };
  const addresses = [{ ip: '192.168.0.70', family: 4 as const, eniId: taken.lease.eniId, assignmentId: '' }];
  const pending = { ...taken.lease, state: 'pending' as const, hostVeth, addresses };
  // An interface of another namespace, whose peer has the same index in yet another one.
  const { pods } = takeover({ leases: [pending], reservations: [] });
  t.deepEqual(pods, []);
});
