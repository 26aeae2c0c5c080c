import test from 'ava';
import { buildVerdicts } from '../../../cli/commands/diff/build-verdicts.ts';
import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import type { ObservedHost } from '../../../dataplane/observed.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { desiredOf } from '../../../inspection/desired/desired-of.ts';
import { type Change, renderChange } from '../../../inspection/judge/change.ts';
import type { LostPeer } from '../../../inspection/judge/compare-links.ts';
import { compareNode, type NodeSnapshot } from '../../../inspection/judge/compare-node.ts';
import { type Difference, isDifferent } from '../../../inspection/judge/difference.ts';
import { known } from '../../../inspection/node/known.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { applyToModel } from '../../dataplane/kernel-model.ts';
import { asPlanned, ENIS, healthySight, leaseOf, linkOf } from './sight-fixture.ts';

const HEALTHY = healthySight();
const POD_IP = '10.0.5.10';
const VETH = 'eni5x10';
const VETH_IFINDEX = 5010;

const idsOf = (sight: NodeSnapshot): readonly string[] => compareNode(sight).differences.map(({ id }) => id);

const withHost = (change: (host: ObservedHost) => Partial<ObservedHost>): NodeSnapshot => ({
  ...HEALTHY,
  host: { ...HEALTHY.host, ...change(HEALTHY.host) },
});

const withPod = (change: (inside: ObservedHost) => Partial<ObservedHost>): NodeSnapshot => ({
  ...HEALTHY,
  pods: HEALTHY.pods.map((pod, index) =>
    index === 0 ? { ...pod, observed: { ...pod.observed, ...change(pod.observed) } } : pod,
  ),
});

const withLink = (ifname: string, change: object) =>
  withHost(({ links }) => ({ links: links.map((link) => (link.ifname === ifname ? { ...link, ...change } : link)) }));

const withSysctl = (name: string, value: string) =>
  withHost(({ sysctls }) => ({ sysctls: new Map(sysctls).set(name, value) }));

test('compareNode: finds nothing where all is as planned', (t) => {
  t.deepEqual(compareNode(HEALTHY), { differences: [], changes: [], unjudged: [] });
});

const OURS = { protocol: RTPROT_TKE_ENI, shown: 'ours' };

/** A filter of the fast path on a link. */
const filterOn = ({ ifindex, ifname }: ObservedHost['links'][number]) =>
  ({ ifindex, ifname, direction: 'ingress', program: 'fast', isCurrent: true }) as const;

const HOST_CASES: readonly (readonly [string, NodeSnapshot, readonly string[], string])[] = [
  [
    'a filter of the fast path that is not planned',
    withHost(({ links }) => ({
      filters: { ours: links.filter(({ ifname }) => ifname === 'eth5').map(filterOn), foreign: [] },
    })),
    ['fast-path'],
    'ENI eni-5 (eth5)',
  ],
  [
    'a rule that is not there',
    withHost(({ rules }) => ({ rules: rules.filter(({ priority }) => priority !== 512) })),
    ['rule-missing'],
    'node',
  ],
  [
    'a rule that looks up another table',
    withHost(({ rules }) => ({
      rules: rules.map((rule) => (rule.priority === 1536 && rule.table === 4005 ? { ...rule, table: 4006 } : rule)),
    })),
    ['rule-wrong-table'],
    'ENI eni-5 (eth5)',
  ],
  [
    'a rule of ours that nobody wants',
    withHost(({ rules }) => ({
      rules: [...rules, { family: 4, priority: 1537, table: 4999, src: '10.9.9.9/32', ...OURS }],
    })),
    ['rule-stale'],
    'node',
  ],
  [
    'a route that is not there',
    withHost(({ routes }) => ({ routes: routes.filter(({ dst }) => dst !== `${POD_IP}/32`) })),
    ['route-missing'],
    'Pod default/web-510',
  ],
  [
    'a route by another interface',
    withHost(({ routes }) => ({
      routes: routes.map((route) => (route.dst === `${POD_IP}/32` ? { ...route, oif: 6, oifname: 'eth6' } : route)),
    })),
    ['route-wrong-device'],
    'Pod default/web-510',
  ],
  [
    'a route of ours that nobody wants',
    withHost(({ routes }) => ({
      routes: [...routes, { table: 3999, dst: '10.0.5.99/32', oif: 5010, oifname: VETH, scope: 'link', ...OURS }],
    })),
    ['route-stale'],
    'node',
  ],
  ['an ENI that is down', withLink('eth5', { isUp: false }), ['eni-down'], 'ENI eni-5 (eth5)'],
  ['an ENI of another MTU', withLink('eth5', { mtu: 1400 }), ['mtu-mismatch'], 'ENI eni-5 (eth5)'],
  ['a host veth that is down', withLink(VETH, { isUp: false }), ['veth-down'], 'Pod default/web-510'],
  ['a host veth in another group', withLink(VETH, { group: 4006 }), ['link-group-wrong'], 'Pod default/web-510'],
  ['a host veth with ARP off', withLink(VETH, { isNoArp: true }), ['link-noarp'], 'Pod default/web-510'],
  ['a host veth in a bridge', withLink(VETH, { master: 99 }), ['link-enslaved'], 'Pod default/web-510'],
  [
    'a host veth with another MAC',
    withLink(VETH, { mac: '02:de:ad:00:00:01' }),
    ['veth-mac-changed'],
    'Pod default/web-510',
  ],
  [
    'a host veth whose alias another program wrote',
    withLink(VETH, { ifalias: 'web' }),
    ['veth-alias-changed'],
    'Pod default/web-510',
  ],
  ['an ENI with ARP off', withLink('eth5', { isNoArp: true }), ['link-noarp'], 'ENI eni-5 (eth5)'],
  ['an ENI with another MAC', withLink('eth5', { mac: '02:11:22:33:44:55' }), ['eni-mac-changed'], 'ENI eni-5 (eth5)'],
  ['an ENI in a bridge', withLink('eth5', { master: 99 }), ['link-enslaved'], 'ENI eni-5 (eth5)'],
  ['no forwarding on an ENI', withSysctl('net.ipv4.conf.eth5.forwarding', '0'), ['ip-forward-off'], 'ENI eni-5 (eth5)'],
  [
    'no forwarding on a host veth',
    withSysctl(`net.ipv4.conf.${VETH}.forwarding`, '0'),
    ['ip-forward-off'],
    'Pod default/web-510',
  ],
  [
    'an ENI without its address',
    withHost(({ addresses }) => ({ addresses: addresses.filter(({ prefix }) => prefix !== '10.0.5.5/32') })),
    ['eni-without-address'],
    'ENI eni-5 (eth5)',
  ],
  ['ip_forward', withSysctl('net.ipv4.ip_forward', '0'), ['ip-forward-off'], 'node'],
  [
    'strict rp_filter on an ENI',
    withSysctl('net.ipv4.conf.eth5.rp_filter', '1'),
    ['rp-filter-strict'],
    'ENI eni-5 (eth5)',
  ],
  [
    'no rp_filter on a host veth',
    withSysctl(`net.ipv4.conf.${VETH}.rp_filter`, '0'),
    ['rp-filter-off'],
    'Pod default/web-510',
  ],
  ['another setting', withSysctl('net.ipv6.conf.eth5.accept_ra', '2'), ['sysctl-changed'], 'ENI eni-5 (eth5)'],
  ['no nftables table', withHost(() => ({ nft: {} })), ['nft-table-missing'], 'node'],
  ['another nftables table', withHost(() => ({ nft: { restore: 'other' } })), ['nft-table-changed'], 'node'],
];

for (const [what, sight, ids, whose] of HOST_CASES) {
  test(`compareNode: names ${what}, and its changes mend it`, (t) => {
    const { differences, changes } = compareNode(sight);
    t.deepEqual(
      differences.map(({ id }) => id),
      ids,
    );
    t.is(differences[0]?.whose, whose);
    t.true(differences.every((difference) => difference.isOurs && isDifferent(difference)));
    const text = sight.desired.host.nft?.text ?? '';
    const mended = changes
      .map(operationOf)
      .reduce((kernel, operation) => applyToModel(kernel, operation, () => text), sight.host);
    t.deepEqual(idsOf({ ...sight, host: mended }), []);
  });
}

function operationOf(change: Change): Operation {
  if (change.kind !== 'host' && change.kind !== 'pod') throw new Error(`${change.kind} is no operation`);
  return change.operation;
}

const POD_CASES: readonly (readonly [string, NodeSnapshot, readonly string[]])[] = [
  ['its address', withPod(() => ({ addresses: [] })), ['pod-address-missing']],
  ['its routes', withPod(() => ({ routes: [] })), ['pod-route-missing', 'pod-route-missing']],
  ['its neighbour', withPod(() => ({ neighs: [] })), ['neigh-missing']],
  [
    'another neighbour',
    withPod(({ neighs }) => ({ neighs: neighs.map((neigh) => ({ ...neigh, lladdr: '02:00:00:00:00:99' })) })),
    ['neigh-wrong-mac'],
  ],
  [
    'its link down with another MTU',
    withPod(({ links }) => ({
      links: links.map((link) => (link.ifname === 'eth0' ? { ...link, isUp: false, mtu: 9000 } : link)),
    })),
    ['pod-link-down', 'mtu-mismatch'],
  ],
  [
    'a default route with a source that is not its own',
    withPod(({ routes }) => ({
      routes: routes.map((route) => (route.gateway === undefined ? route : { ...route, prefsrc: '10.0.5.77' })),
    })),
    ['source-not-ours'],
  ],
];

for (const [what, sight, ids] of POD_CASES) {
  test(`compareNode: names in a Pod ${what}, once for each, and mends it in its namespace`, (t) => {
    const { differences, changes } = compareNode(sight);
    t.deepEqual(
      differences.map(({ id }) => id),
      ids,
    );
    t.true(differences.every(({ whose }) => whose === 'Pod default/web-510'));
    t.true(changes.length > 0 && new Set(changes.map(renderChange)).size === changes.length);
    t.true(changes.every((change) => renderChange(change).startsWith('nsenter --net=/run/netns/c510 -- ip ')));
  });
}

test('compareNode: leaves alone what a Pod made for itself', (t) => {
  const sight = withPod(({ addresses, routes }) => ({
    addresses: [...addresses, { ifindex: 2, ifname: 'eth0', prefix: '192.0.2.7/32' }],
    routes: [...routes, { table: 254, dst: '192.0.2.0/24', oif: 2, oifname: 'eth0', ...OURS }],
  }));
  const { differences, changes } = compareNode(sight);
  t.deepEqual(changes, []);
  t.deepEqual(
    differences.map(({ id, severity }) => [id, severity]),
    [['pod-foreign-address', 'info']],
  );
  t.false(differences.some(isDifferent));
});

const RULE: RuleMessage = {
  unknown: [],
  family: 2,
  tos: 0,
  action: 1,
  flags: 0,
  priority: 100,
  table: 254,
  protocol: 3,
};
const ROUTE: RouteMessage = { unknown: [], family: 2, tos: 0, protocol: 3, scope: 0, type: 1, flags: 0, table: 254 };

/** Those that the kernel has in each namespace. */
const LOCAL_RULES = [AF_INET, AF_INET6].map((family) => ({ ...RULE, family, priority: 0, table: 255, protocol: 2 }));

const withForeign = (rules: readonly RuleMessage[], routes: readonly RouteMessage[] = []): NodeSnapshot => ({
  ...HEALTHY,
  facts: {
    ...HEALTHY.facts,
    host: {
      ...HEALTHY.facts.host,
      rules: [...LOCAL_RULES, ...rules],
      routes: [{ ...ROUTE, gateway: '10.0.0.1', oif: 2 }, ...routes],
    },
  },
});

const FOREIGN_CASES: readonly (readonly [string, NodeSnapshot, readonly string[]])[] = [
  ['a rule for all packets', withForeign([RULE]), ['foreign-rule-above-ours']],
  ['a rule from a Pod', withForeign([{ ...RULE, src: `${POD_IP}/32` }]), ['foreign-rule-above-ours']],
  ['a rule to the Pods’ subnet', withForeign([{ ...RULE, dst: '10.0.5.0/24' }]), ['foreign-rule-above-ours']],
  ['a rule below ours', withForeign([{ ...RULE, priority: 2000 }]), []],
  ['a rule from elsewhere', withForeign([{ ...RULE, src: '192.0.2.0/24' }]), []],
  ['a rule to one far place', withForeign([{ ...RULE, dst: '192.0.2.0/24' }]), []],
  ['a rule for a mark of its own', withForeign([{ ...RULE, fwmark: 0x200, fwmask: 0xf00 }]), []],
  ['a rule for another interface', withForeign([{ ...RULE, iifname: 'tun0' }]), []],
  ['a rule to a table without routes', withForeign([{ ...RULE, table: 220 }]), []],
  ['a rule for all to the local table, as Cilium moves it', withForeign([{ ...RULE, table: 255 }]), []],
  [
    'a rule to a VPN’s table that leaves Pods out',
    withForeign(
      [{ ...RULE, table: 220 }],
      [
        { ...ROUTE, table: 220, dst: '192.168.77.0/24' },
        { ...ROUTE, table: 220, dst: '10.0.0.0/8', type: 9 },
      ],
    ),
    [],
  ],
  ['a rule that passes over default routes', withForeign([{ ...RULE, suppressPrefixlength: 0 }]), []],
  [
    'a rule at a priority of ours',
    withForeign([{ ...RULE, priority: 1537, src: '192.0.2.0/24' }]),
    ['foreign-rule-priority'],
  ],
  ['a rule to a table of ours', withForeign([{ ...RULE, priority: 2000, table: 4005 }]), ['foreign-rule-to-our-table']],
  [
    'a rule for our marks',
    withForeign([{ ...RULE, priority: 2000, fwmark: 0x30000, fwmask: 0xff0000 }]),
    ['mark-collision'],
  ],
  [
    'a route in a table of ours',
    withForeign([], [{ ...ROUTE, table: 4005, dst: '192.0.2.0/24', oif: 2 }]),
    ['table-collision'],
  ],
  [
    'a blackhole in the place of a route of ours',
    withForeign([], [{ ...ROUTE, type: 6, table: 3999, dst: `${POD_IP}/32` }]),
    ['blackhole-route'],
  ],
  ['a route in main', withForeign([], [{ ...ROUTE, dst: '192.0.2.0/24', oif: 2 }]), []],
];

for (const [what, sight, ids] of FOREIGN_CASES) {
  test(`compareNode: ${ids.length === 0 ? 'is not disturbed by' : 'names'} ${what}, and never changes it`, (t) => {
    const { differences, changes } = compareNode(sight);
    t.deepEqual(
      differences.map(({ id }) => id),
      ids,
    );
    t.deepEqual(changes, []);
    t.true(differences.every(({ isOurs, fix }) => !isOurs && fix.length > 0));
  });
}

const LOST = linkOf(77, 'eni77', { kind: 'veth', ifalias: 'tke-eni/lost/eth0' });
const withLost = (peer: LostPeer): NodeSnapshot => ({
  ...HEALTHY,
  facts: { ...HEALTHY.facts, host: { ...HEALTHY.facts.host, links: [...HEALTHY.facts.host.links, LOST] } },
  peers: new Map([[77, peer]]),
});

const PEER_CASES: readonly (readonly [LostPeer, string, readonly string[]])[] = [
  [{ kind: 'host' }, 'veth-leaked', ['ip link del dev eni77']],
  [{ kind: 'nowhere' }, 'veth-leaked', ['ip link del dev eni77']],
  [{ kind: 'netns', path: '/run/netns/lost' }, 'pod-without-lease', []],
  [{ kind: 'unknown', why: 'not root' }, 'pod-without-lease', []],
];

for (const [peer, id, lines] of PEER_CASES) {
  test(`compareNode: a veth of ours without a lease, its other end ${peer.kind}: ${id}`, (t) => {
    const { differences, changes } = compareNode(withLost(peer));
    t.deepEqual(
      differences.map((one) => one.id),
      [id],
    );
    t.deepEqual(changes.map(renderChange), lines);
  });
}

test('compareNode: two reads that find the other end of a veth in different places show the same difference', (t) => {
  const earlier = withLost({ kind: 'unknown', why: 'a namespace was just going away' });
  t.deepEqual(idsOf({ ...withLost({ kind: 'netns', path: '/run/netns/lost' }), earlier }), ['pod-without-lease']);
});

test('compareNode: names an address that the host, or another Pod, has as well', (t) => {
  const { host, pods } = HEALTHY.facts;
  const address = { unknown: [], family: 2, prefixlen: 32, flags: 0, scope: 0, ifindex: 2, address: POD_IP };
  const onHost = { ...HEALTHY, facts: { ...HEALTHY.facts, host: { ...host, addresses: [address] } } };
  t.deepEqual(idsOf(onHost), ['address-two-owners']);
  const inside = { ...host, addresses: [address] };
  const [first, second] = pods;
  if (first === undefined || second === undefined) throw new Error('the fixture has two Pods');
  const inOther = { ...HEALTHY, facts: { ...HEALTHY.facts, pods: [first, { ...second, inside: known(inside) }] } };
  t.deepEqual(idsOf(inOther), ['address-two-owners']);
  const inItself = { ...HEALTHY, facts: { ...HEALTHY.facts, pods: [{ ...first, inside: known(inside) }, second] } };
  t.deepEqual(idsOf(inItself), []);
});

test('compareNode: names what a kernel without IPv6 lacks, where it is wanted', (t) => {
  const wanted = { key: { path: ['net', 'ipv6', 'conf', 'all', 'forwarding'] }, value: '1' };
  const { host } = HEALTHY.desired;
  const desired = { ...HEALTHY.desired, host: { ...host, sysctls: [...host.sysctls, wanted] } };
  t.deepEqual(idsOf({ ...HEALTHY, desired }), ['ipv6-disabled']);
});

test('compareNode: a setting of IPv4 that is not there says nothing about IPv6', (t) => {
  const wanted = { key: { path: ['net', 'ipv4', 'conf', 'eni0123456789b', 'forwarding'] }, value: '1' };
  const { host } = HEALTHY.desired;
  const desired = { ...HEALTHY.desired, host: { ...host, sysctls: [...host.sysctls, wanted] } };
  t.deepEqual(idsOf({ ...HEALTHY, desired }), ['sysctl-changed']);
});

test('compareNode: a host interface that was renamed is compared by its new name', (t) => {
  const links = HEALTHY.facts.host.links.map((link) => (link.ifname === VETH ? { ...link, ifname: 'udev0' } : link));
  const { sysctls } = desiredOf(HEALTHY.agent, links).host;
  t.deepEqual(
    sysctls.map(({ key }) => key.path[3]).filter((name) => name === VETH || name === 'udev0'),
    sysctls.map(({ key }) => key.path[3]).filter((name) => name === 'udev0'),
  );
  t.true(sysctls.some(({ key }) => key.path[3] === 'udev0'));
});

test('compareNode: parts a Pod that lost its link from a sandbox that is gone', (t) => {
  const links = HEALTHY.facts.host.links.filter(({ ifname }) => ifname !== VETH);
  const facts = { ...HEALTHY.facts, host: { ...HEALTHY.facts.host, links } };
  const desired = desiredOf(HEALTHY.agent, links);
  const lost = { ...HEALTHY, facts, desired, host: { ...HEALTHY.host, ...asPlanned(desired.host) }, pods: [] };
  t.deepEqual(idsOf({ ...lost, host: { ...lost.host, nft: HEALTHY.host.nft } }), ['veth-missing']);
  t.deepEqual(
    idsOf({ ...lost, host: { ...lost.host, nft: HEALTHY.host.nft }, deadSandboxes: new Set(['c510/eth0']) }),
    ['lease-without-sandbox'],
  );
});

test('compareNode: tells nothing of what a lease in transit has in the kernel', (t) => {
  const quiet = healthySight([leaseOf(5, 10), leaseOf(6, 20, { state: 'pending' })]);
  // As HEALTHY: the route to the Pod of the pending lease is there.
  t.deepEqual(idsOf({ ...quiet, host: { ...quiet.host, routes: HEALTHY.host.routes } }), []);
});

test('compareNode: deletes nothing when parts of the plan are not known', (t) => {
  const sight = withHost(({ routes }) => ({
    routes: [...routes, { table: 3999, dst: '10.0.5.99/32', oif: VETH_IFINDEX, oifname: VETH, ...OURS }],
  }));
  t.deepEqual(idsOf({ ...sight, desired: { ...sight.desired, isComplete: false } }), []);
});

test('compareNode: tells of a node that is never quiet only what two looks saw', (t) => {
  const broken = withSysctl('net.ipv4.ip_forward', '0');
  t.deepEqual(idsOf({ ...broken, earlier: HEALTHY }), []);
  const { differences, changes } = compareNode({ ...broken, earlier: broken });
  t.deepEqual([differences.length, changes.length], [1, 1]);
});

test('buildVerdicts: judges the node, each ENI and each Pod; with a Pod what its packets need', (t) => {
  const sight = withLink('eth5', { isUp: false });
  const found = compareNode(sight);
  const verdicts = (key?: string) => buildVerdicts(sight, found, key).map(({ subject, isOk }) => [subject, isOk]);
  t.deepEqual(verdicts(), [
    ['node', true],
    ['ENI eni-5 (eth5)', false],
    ['ENI eni-6 (eth6)', true],
    ['Pod default/web-510 (10.0.5.10)', false],
    ['Pod default/web-620 (10.0.6.20)', true],
  ]);
  t.deepEqual(verdicts('c620/eth0'), [
    ['node', true],
    ['ENI eni-6 (eth6)', true],
    ['Pod default/web-620 (10.0.6.20)', true],
  ]);
});

test('compareNode: every finding says what, why and for whom, and what is not ours has a next step', (t) => {
  const sights = [...HOST_CASES, ...POD_CASES, ...FOREIGN_CASES].map(([, sight]) => sight);
  const all: readonly Difference[] = sights.flatMap((sight) => compareNode(sight).differences);
  t.true(all.length > ENIS.length);
  for (const { what, why, whose, fix, subjects } of all) {
    t.true(
      [what, why, whose].every((text) => text !== ''),
      what,
    );
    t.true(fix.length > 0 && subjects.length > 0, what);
    t.false(what.includes('\n'), what);
  }
});
