import test, { type ExecutionContext } from 'ava';
import { isRelevant, type WatchedObjects } from '../../../agent/repair/relevant-event.ts';
import {
  BRIDGE_IFINDEX,
  BRIDGE_MAC,
  RTPROT_TKE_ENI,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
  TABLE_PODLESS,
} from '../../../dataplane/numbers.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import { IFF_NOARP, IFF_PROMISC } from '../../../netlink/uapi/if-link.ts';
import { AF_BRIDGE } from '../../../netlink/uapi/netlink.ts';
import { RTN_UNREACHABLE } from '../../../netlink/uapi/rtnetlink.ts';

const ENI = 7;
const VETH = 20;
const PORT = 23;
const VETH_MAC = '02:00:00:00:00:20';
const VETH_MARKS = { name: 'eni00000000020', alias: 'tke-eni/c20/eth0' };
const PORT_MARKS = { name: 'eni00000000023', alias: 'tke-eni/c23/eth0' };
const CONCERNS: WatchedObjects = {
  ifindexes: new Set([2, ENI, VETH, PORT, BRIDGE_IFINDEX]),
  macs: new Set(['02:00:00:00:00:0a']),
  veths: new Map([
    [VETH, { ...VETH_MARKS, group: 4007, mtu: 1500, mac: VETH_MAC }],
    [PORT, { ...PORT_MARKS, group: 0, mtu: 1500, mac: VETH_MAC, master: BRIDGE_IFINDEX }],
  ]),
  podPrefixes: new Set(['10.0.0.5/32']),
  primaryIps: new Set(['10.0.0.2']),
  connectedLinks: new Set([60]),
  bridge: { ifindex: BRIDGE_IFINDEX, name: 'cbr0', mtu: 1500, mac: BRIDGE_MAC },
};
const UP = 1;

/** Senders: the kernel itself, and another process. Our own changes are not judged at all. */
const KERNEL = 0;
const OTHER = 99;

/** Only the fields that the decision looks at matter. */
function event(
  kind: 'link' | 'address' | 'route' | 'rule' | 'netconf',
  op: 'new' | 'del',
  message: object,
  portid = KERNEL,
): MonitorEvent {
  return { kind, op, portid, message } as unknown as MonitorEvent;
}

const relevant = test.macro((t: ExecutionContext, given: MonitorEvent, wanted: boolean, isPlannedNow?: boolean) => {
  t.is(isRelevant(given, CONCERNS, linkNow(given, isPlannedNow === true)), wanted);
});
const linkNow = (given: MonitorEvent, isPlanned: boolean) => (ifindex: number) =>
  (isPlanned ? (ifindex === PORT ? port : veth) : messageOf(given)) as unknown as LinkMessage;
const messageOf = (given: MonitorEvent) => ('message' in given ? given.message : undefined);
const ours = { protocol: RTPROT_TKE_ENI };
const foreign = { protocol: 3 };
const port = {
  ...{ ifindex: PORT, ifname: PORT_MARKS.name, ifalias: PORT_MARKS.alias },
  ...{ group: 0, mtu: 1500, flags: UP, address: VETH_MAC },
  ...{ master: BRIDGE_IFINDEX, bridgePort: { mode: 1 } },
};
/** IFLA_PROTINFO with IFLA_BRPORT_MODE. */
const portChange = (mode: number) => {
  const { bridgePort: _ofLinkinfo, ifalias: _ofRtnetlink, ...rest } = port;
  return { ...rest, family: AF_BRIDGE, protinfo: Uint8Array.of(5, 0, 4, 0, mode, 0, 0, 0) };
};
const bridge = {
  ...{ ifindex: BRIDGE_IFINDEX, ifname: 'cbr0', group: 0, mtu: 1500, flags: UP, address: BRIDGE_MAC },
  kind: 'bridge',
};
const { name: ifname, alias: ifalias } = VETH_MARKS;
const veth = { ifindex: VETH, ifname, ifalias, group: 4007, mtu: 1500, flags: UP, address: VETH_MAC };

test('isRelevant: lost notifications', relevant, { kind: 'overrun' }, true);
test('isRelevant: any nftables change', relevant, { kind: 'nftables', op: 'new', portid: OTHER }, true);
test('isRelevant: not the link that an ADD made', relevant, event('link', 'new', veth), false);
test('isRelevant: a Pod link in another group', relevant, event('link', 'new', { ...veth, group: 0 }), true);
test('isRelevant: a Pod link that is down', relevant, event('link', 'new', { ...veth, flags: 0 }), true);
test('isRelevant: a Pod link without ARP', relevant, event('link', 'new', { ...veth, flags: UP | IFF_NOARP }), true);
test('isRelevant: a Pod link in a bridge', relevant, event('link', 'new', { ...veth, master: 9 }), true);
test(
  'isRelevant: a Pod link with another MAC',
  relevant,
  event('link', 'new', { ...veth, address: '02:00:00:00:00:21' }),
  true,
);
test('isRelevant: a Pod link with another alias', relevant, event('link', 'new', { ...veth, ifalias: 'web' }), true);
test('isRelevant: a Pod link without its alias', relevant, event('link', 'new', { ...veth, ifalias: undefined }), true);
test(
  'isRelevant: not a Pod link that has got its alias since',
  relevant,
  event('link', 'new', { ...veth, ifalias: undefined }),
  false,
  true,
);
test('isRelevant: a Pod link with another name', relevant, event('link', 'new', { ...veth, ifname: 'udev0' }), true);
test('isRelevant: not a port as it should be', relevant, event('link', 'new', port), false);
test('isRelevant: a port out of its bridge', relevant, event('link', 'new', { ...port, master: 0 }), true);
test('isRelevant: a port without hairpin', relevant, event('link', 'new', { ...port, bridgePort: { mode: 0 } }), true);
test(
  'isRelevant: a port without hairpin, as the bridge notifies it',
  relevant,
  event('link', 'new', portChange(0)),
  true,
);
test(
  'isRelevant: not a port with hairpin, as the bridge notifies it',
  relevant,
  event('link', 'new', portChange(1)),
  false,
);
test(
  'isRelevant: not a port that has got its hairpin since',
  relevant,
  event('link', 'new', { ...port, bridgePort: { mode: 0 } }),
  false,
  true,
);
test(
  'isRelevant: a port that was down, although it is in its place',
  relevant,
  event('link', 'new', { ...port, flags: 0 }),
  true,
  true,
);
test('isRelevant: a Pod link that was in a bridge', relevant, event('link', 'new', { ...veth, master: 9 }), true, true);
test('isRelevant: not the bridge as it should be: a Pod came or went', relevant, event('link', 'new', bridge), false);
for (const [what, change] of Object.entries({
  'that is down': { flags: 0 },
  'in promiscuous mode': { flags: UP | IFF_PROMISC },
  'without ARP': { flags: UP | IFF_NOARP },
  'with another MTU': { mtu: 1400 },
  'with another MAC': { address: VETH_MAC },
  'with another name': { ifname: 'cbr1' },
  'in a bond': { master: 9 },
  'in the group of an ENI': { group: 4007 },
})) {
  test(`isRelevant: the bridge ${what}`, relevant, event('link', 'new', { ...bridge, ...change }), true);
}
test('isRelevant: the bridge that is deleted', relevant, event('link', 'del', { ifindex: BRIDGE_IFINDEX }), true);
test('isRelevant: an address of the bridge', relevant, event('address', 'del', { ifindex: BRIDGE_IFINDEX }), true);
test(
  'isRelevant: a link in the place of the bridge',
  relevant,
  event('link', 'new', { ifindex: 77, ifname: 'cbr0' }),
  true,
);
test('isRelevant: an active Pod link that is deleted', relevant, event('link', 'del', { ifindex: VETH }), true);
test('isRelevant: not the link that a DEL took', relevant, event('link', 'del', { ifindex: 21 }), false);
test(
  'isRelevant: a link with an ENI’s MAC',
  relevant,
  event('link', 'new', { ifindex: 40, address: '02:00:00:00:00:0a' }),
  true,
);
test('isRelevant: an address of an ENI', relevant, event('address', 'del', { ifindex: ENI }), true);
test(
  'isRelevant: an address of the primary interface on another link',
  relevant,
  event('address', 'new', { ifindex: 50, local: '10.0.0.2', address: '10.0.0.2' }),
  true,
);
const connectedRoute = { table: TABLE_MAIN, dst: '172.17.0.0/16', oif: 50, type: 1, protocol: 2 };
const route = (op: 'new' | 'del', more: object = {}) => event('route', op, { ...connectedRoute, ...more });
test('isRelevant: a network is connected by another link', relevant, route('new'), true);
test('isRelevant: a network is connected no more', relevant, route('del'), true);
test(
  'isRelevant: a link-local network is connected by each link, of a Pod too',
  relevant,
  route('new', { dst: 'fe80::/64' }),
  false,
);
test('isRelevant: not a route by a gateway', relevant, route('new', { gateway: '192.168.50.1' }), false);
test('isRelevant: not a route to a single host', relevant, route('new', { dst: '172.17.0.2/32' }), false);
test(
  'isRelevant: an IPv6 network of 32 bits is no single host',
  relevant,
  route('new', { dst: '2001:db8::/32' }),
  true,
);
test('isRelevant: not a network of an ENI', relevant, route('new', { oif: ENI }), false);
test('isRelevant: a link of such a network is down', relevant, event('link', 'new', { ifindex: 60, flags: 0 }), true);
test('isRelevant: a link of such a network is gone', relevant, event('link', 'del', { ifindex: 60, flags: UP }), true);
test(
  'isRelevant: not a link of such a network that is up',
  relevant,
  event('link', 'new', { ifindex: 60, flags: UP }),
  false,
);
test('isRelevant: not an address of somebody else', relevant, event('address', 'new', { ifindex: 50 }), false);
test(
  'isRelevant: a route with our protocol in our table that another process wrote',
  relevant,
  event('route', 'new', { ...ours, table: TABLE_POD_ROUTES, dst: '10.0.0.6/32', oif: VETH }, OTHER),
  true,
);
test(
  'isRelevant: a route with our protocol in main that another process wrote',
  relevant,
  event('route', 'new', { ...ours, table: TABLE_MAIN, dst: '192.0.2.0/24', oif: 2 }, OTHER),
  true,
);
test(
  'isRelevant: not a route with our protocol in a table of others',
  relevant,
  event('route', 'new', { ...ours, table: 100, dst: '192.0.2.0/24', oif: 2 }, OTHER),
  false,
);
test(
  'isRelevant: a rule with our protocol that another process wrote',
  relevant,
  event('rule', 'new', { ...ours, priority: 1536, src: '10.0.0.6/32', table: 4007 }, OTHER),
  true,
);
test(
  'isRelevant: a per-pod rule of no active Pod that another process deleted',
  relevant,
  event('rule', 'del', { ...ours, priority: 512, dst: '10.0.0.6/32', table: TABLE_MAIN }, OTHER),
  true,
);
test(
  'isRelevant: not a route that the kernel notifies again',
  relevant,
  event('route', 'new', { ...ours, table: TABLE_POD_ROUTES, dst: '10.0.0.5/32', oif: VETH }),
  false,
);
test(
  'isRelevant: the route of an active Pod that is deleted',
  relevant,
  event('route', 'del', { ...ours, table: TABLE_POD_ROUTES, dst: '10.0.0.5/32', oif: VETH }),
  true,
);
test(
  'isRelevant: not the route that a DEL took',
  relevant,
  event('route', 'del', { ...ours, table: TABLE_POD_ROUTES, dst: '10.0.0.6/32', oif: 21 }),
  false,
);
test(
  'isRelevant: a route that refuses an address without a Pod, which went with lo',
  relevant,
  event('route', 'del', {
    ...ours,
    family: 10,
    table: TABLE_PODLESS,
    dst: 'fd00::6/128',
    oif: 1,
    type: RTN_UNREACHABLE,
  }),
  true,
);
test(
  'isRelevant: a default route of an ENI that is deleted',
  relevant,
  event('route', 'del', { ...ours, table: 4007 }),
  true,
);
test(
  'isRelevant: the gateway’s route of an ENI that is deleted',
  relevant,
  event('route', 'del', { ...ours, table: 4007, dst: '10.0.0.1/32', oif: ENI }),
  true,
);
test(
  'isRelevant: a default route that comes',
  relevant,
  event('route', 'new', { ...foreign, table: TABLE_MAIN }),
  true,
);
test('isRelevant: a foreign route in our table', relevant, event('route', 'new', { ...foreign, table: 4007 }), true);
test(
  'isRelevant: not a foreign route in main',
  relevant,
  event('route', 'new', { ...foreign, table: TABLE_MAIN, dst: '172.16.0.0/12' }),
  false,
);
test(
  'isRelevant: a per-pod rule of an active Pod that is deleted',
  relevant,
  event('rule', 'del', { ...ours, priority: 1536, src: '10.0.0.5/32', table: 4007 }),
  true,
);
test(
  'isRelevant: not a per-pod rule that a DEL took',
  relevant,
  event('rule', 'del', { ...ours, priority: 512, dst: '10.0.0.6/32', table: TABLE_MAIN }),
  false,
);
test(
  'isRelevant: the rule of all Pod routes that is deleted',
  relevant,
  event('rule', 'del', { ...ours, priority: 512, table: TABLE_POD_ROUTES }),
  true,
);
test(
  'isRelevant: the rule of an ENI’s own address that is deleted',
  relevant,
  event('rule', 'del', { ...ours, priority: 1537, src: '10.0.0.2/32', table: 4007 }),
  true,
);
test(
  'isRelevant: a foreign rule at our priority',
  relevant,
  event('rule', 'new', { ...foreign, priority: 1536, table: 100 }),
  true,
);
test(
  'isRelevant: a foreign rule elsewhere with a mark, whose bits may be ours',
  relevant,
  event('rule', 'new', { ...foreign, priority: 100, table: 100, fwmark: 0x10000 }),
  true,
);
test(
  'isRelevant: not a foreign rule elsewhere',
  relevant,
  event('rule', 'new', { ...foreign, priority: 100, table: 100 }),
  false,
);

test('isRelevant: forwarding of an ENI off', relevant, event('netconf', 'new', { ifindex: ENI, forwarding: 0 }), true);
test('isRelevant: forwarding of the node off', relevant, event('netconf', 'new', { ifindex: -1, forwarding: 0 }), true);
test('isRelevant: not forwarding on', relevant, event('netconf', 'new', { ifindex: ENI, forwarding: 1 }), false);
test('isRelevant: rp_filter of an ENI', relevant, event('netconf', 'new', { ifindex: ENI, rpFilter: 1 }), true);
test(
  'isRelevant: rp_filter of a Pod link off',
  relevant,
  event('netconf', 'new', { ifindex: VETH, rpFilter: 0 }),
  true,
);
test(
  'isRelevant: not the rp_filter that an ADD set',
  relevant,
  event('netconf', 'new', { ifindex: VETH, rpFilter: 1 }),
  false,
);
test(
  'isRelevant: not a setting of somebody else',
  relevant,
  event('netconf', 'new', { ifindex: 50, forwarding: 0 }),
  false,
);
test(
  'isRelevant: not the settings of a link that is gone',
  relevant,
  event('netconf', 'del', { ifindex: ENI, forwarding: 0 }),
  false,
);

for (const [what, kind, message, wanted] of [
  ['a filter on the link of a Pod', 'filter', { ifindex: VETH }, true],
  ['a filter on another link', 'filter', { ifindex: 99 }, false],
  ['the place of filters on an ENI', 'qdisc', { ifindex: ENI, kind: 'clsact' }, true],
  ['the place of filters of another program', 'qdisc', { ifindex: VETH, kind: 'ingress' }, true],
  ['a discipline that queues packets', 'qdisc', { ifindex: VETH, kind: 'tbf' }, false],
] as const)
  test(`isRelevant: ${what}, where filters are planned; nowhere else`, (t) => {
    const given = { kind, op: 'del', portid: OTHER, message } as unknown as MonitorEvent;
    t.is(
      isRelevant(given, { ...CONCERNS, hasFilters: true }, () => undefined),
      wanted,
    );
    t.false(isRelevant(given, CONCERNS, () => undefined));
  });
