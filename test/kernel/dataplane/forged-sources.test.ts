import test from 'ava';
import { type Arrivals, SOURCES, type SourceName, sendForgedSources } from './forged-sources-scene.ts';
import { type TestNode, withTestNode } from './test-node.ts';

const ALL = Object.keys(SOURCES) as SourceName[];
const FROM_ELSEWHERE: readonly SourceName[] = ['a host of the VPC', 'a host outside', 'class E'];
/** Loose source validation asks whether there is a route, and each of these has one. */
const ROUTED_HERE: readonly SourceName[] = [
  'the Pod itself',
  'another Pod of the ENI',
  'a Pod of the other ENI',
  'a GlobalRoute address of the node',
];
const REFUSED_ROUTES: readonly SourceName[] = ['a blackhole route', 'an unreachable route', 'a prohibit route'];
const ADDRESSES: readonly SourceName[] = [
  'the primary address of the node',
  'the address of the ENI',
  'the address of the other ENI',
  'an address that another program added',
];
const OF_THE_NODE: readonly SourceName[] = [...ADDRESSES, 'the broadcast of the primary subnet'];

/** What arrives with the plan as it is. Routes of main that refuse have no part: the answer would go by the ENI's table. */
const PLANNED: Arrivals = {
  atPod: inOrder([...FROM_ELSEWHERE, ...ROUTED_HERE, ...REFUSED_ROUTES]),
  // Rule 1537 of the ENI's address leads back to everything.
  atNode: inOrder([...FROM_ELSEWHERE, ...ROUTED_HERE, ...REFUSED_ROUTES]),
  inLiveFlow: { request: false, answer: false },
  arp: inOrder([...FROM_ELSEWHERE, ...ROUTED_HERE, ...REFUSED_ROUTES, 'zero']),
};
/** A check without the mark asks main. */
const CHECKED_BY_MAIN = inOrder([...FROM_ELSEWHERE, ...ROUTED_HERE]);
const UNCHECKED: Arrivals = {
  atPod: inOrder([...PLANNED.atPod, ...OF_THE_NODE]),
  atNode: inOrder([...PLANNED.atNode, ...OF_THE_NODE]),
  inLiveFlow: { request: true, answer: true },
  arp: inOrder([...PLANNED.arp, ...OF_THE_NODE]),
};

const arrives = test.macro((t, change: (node: TestNode) => void, expected: Arrivals) =>
  withTestNode(async (node) => {
    t.deepEqual(await sendForgedSources(node, change), expected);
  }),
);

test(
  'an ENI: packets with an address of the node as their source reach neither a Pod nor the node',
  arrives,
  () => {},
  PLANNED,
);

test(
  'an ENI with accept_local=1 of another program: packets of the node’s own addresses arrive',
  arrives,
  ({ run }: TestNode) => {
    for (const eni of ['eth5', 'eth6']) run('sysctl', '-qw', `net.ipv4.conf.${eni}.accept_local=1`);
  },
  {
    atPod: inOrder([...PLANNED.atPod, ...ADDRESSES]),
    atNode: inOrder([...PLANNED.atNode, ...ADDRESSES]),
    inLiveFlow: { request: true, answer: true },
    arp: inOrder([...PLANNED.arp, ...ADDRESSES]),
  },
);

// Why the ENIs keep rp_filter=2, though the kernel is faster without: docs/adr/0080.
test('an ENI without source validation: everything but martians arrives', arrives, withoutValidation, UNCHECKED);

test(
  'an ENI without source validation, new flows checked by nftables: forged packets of live flows arrive',
  arrives,
  (node) => {
    withoutValidation(node);
    addRule(node, 'ct state != established fib saddr type != unicast drop');
    addRule(node, 'ct state != established fib saddr oif missing drop');
  },
  { ...PLANNED, atPod: CHECKED_BY_MAIN, inLiveFlow: UNCHECKED.inLiveFlow, arp: UNCHECKED.arp },
);

test(
  'an ENI without source validation, all packets checked by nftables: as planned, but for answers to ARP',
  arrives,
  (node) => {
    withoutValidation(node);
    addRule(node, 'fib saddr type != unicast drop');
    addRule(node, 'ct state != established fib saddr oif missing drop');
  },
  { ...PLANNED, atPod: CHECKED_BY_MAIN, arp: UNCHECKED.arp },
);

function inOrder(names: readonly SourceName[]): readonly SourceName[] {
  return ALL.filter((name) => names.includes(name));
}

function withoutValidation({ run }: TestNode): void {
  for (const [setting, value] of [
    ['rp_filter', 0],
    ['accept_local', 1],
  ]) {
    for (const eni of ['eth5', 'eth6']) run('sysctl', '-qw', `net.ipv4.conf.${eni}.${setting}=${value}`);
  }
}

function addRule({ run }: TestNode, rule: string): void {
  run('nft', `insert rule inet tke_eni prerouting iifname { eth5, eth6 } ${rule}`);
}
