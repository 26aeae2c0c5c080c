import test from 'ava';
import { applyOperations } from '../../../dataplane/apply.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { observeNetns } from '../../../dataplane/observe.ts';
import { renderOperation } from '../../../dataplane/operation.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { partOf } from '../../support/suite-part.ts';
import { type IpOf, withTestNode } from './test-node.ts';

// What others give to objects of ours, one attribute at a time, by iproute2: each is found and taken away, as `ip -j` judges.

type Case = { readonly lines: readonly string[]; readonly after?: readonly string[] };

const IPV4_DEFAULT = 'default via 10.0.5.1 dev eth5 table 4025 proto 84';
const IPV6_DEFAULT = 'default via fd00:10:0:5::1 dev eth5 table 4025 proto 84';

const METRICS = [
  ...['initcwnd 10', 'initrwnd 10', 'mtu 1400', 'mtu lock 1400', 'advmss 1300', 'window 9000', 'rtt 100', 'rttvar 50'],
  ...['rto_min 10ms', 'hoplimit 9', 'quickack 1', 'congctl reno', 'features ecn', 'reordering 9', 'ssthresh 9'],
  ...['cwnd lock 9', 'fastopen_no_cookie 1'],
];

const ROUTES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    [...METRICS, 'onlink', 'realms 3', 'src 10.0.5.5'].flatMap((words) => [
      [`IPv4 default: ${words}`, { lines: [`route change ${IPV4_DEFAULT} ${words}`] }],
      [`IPv4 default: ${words}, before ours`, { lines: [`route prepend ${IPV4_DEFAULT} ${words}`] }],
      [`IPv4 default: ${words}, behind ours`, { lines: [`route append ${IPV4_DEFAULT} ${words}`] }],
    ]),
  ),
  ...Object.fromEntries(
    [...METRICS, 'expires 900', 'pref low', 'onlink', 'src fd00:10:0:5::5'].map((words) => [
      `IPv6 default: ${words}`,
      { lines: [`-6 route replace ${IPV6_DEFAULT} ${words}`] },
    ]),
  ),
  'IPv4 gateway: scope host': { lines: ['route change 10.0.5.1 dev eth5 table 4025 proto 84 scope host'] },
  ...Object.fromEntries(
    ['blackhole', 'unreachable', 'prohibit', 'throw'].flatMap((type) => [
      [`IPv4 default: ${type}`, { lines: [`route change ${type} default table 4025 proto 84`] }],
      [`IPv6 default: ${type}`, { lines: [`-6 route replace ${type} default table 4025 proto 84`] }],
      [`IPv6 default: ${type} beside ours`, { lines: [`-6 route append ${type} default table 4025 proto 84`] }],
    ]),
  ),
  'IPv4 default: several next hops': {
    lines: [
      'route change default table 4025 proto 84 nexthop via 10.0.5.1 dev eth5 nexthop via 10.0.5.1 dev eth5 weight 3',
    ],
  },
  'IPv6 default: several next hops': {
    lines: ['-6 route append default via fd00:10:0:5::9 dev eth5 onlink table 4025 proto 84'],
  },
  'IPv4 default: a next hop object': {
    lines: ['nexthop add id 7 via 10.0.5.1 dev eth5 onlink', 'route change default nhid 7 table 4025 proto 84'],
    after: ['nexthop del id 7'],
  },
  'IPv4 default: a group of next hop objects before ours': {
    lines: [
      'nexthop add id 7 via 10.0.5.1 dev eth5 onlink',
      'nexthop add id 8 group 7',
      'route prepend default nhid 8 table 4025 proto 84',
    ],
    after: ['nexthop del id 8', 'nexthop del id 7'],
  },
  'IPv6 default: a next hop object': {
    lines: [
      '-6 nexthop add id 9 via fd00:10:0:5::1 dev eth5 onlink',
      '-6 route replace default nhid 9 table 4025 proto 84',
    ],
    after: ['nexthop del id 9'],
  },
  'IPv4 default: encapsulation': {
    lines: ['route change default encap ip id 30 dst 10.0.5.1 via 10.0.5.1 dev eth5 table 4025 proto 84'],
  },
  'IPv4 default: a gateway of IPv6': {
    lines: ['-4 route change default via inet6 fe80::9 dev eth5 table 4025 proto 84'],
  },
  'IPv4 default: another gateway, before ours': {
    lines: ['route prepend default via 10.0.5.9 dev eth5 onlink table 4025 proto 84'],
  },
  'IPv4 default: several behind ours': {
    lines: [`route append ${IPV4_DEFAULT} onlink`, `route append ${IPV4_DEFAULT} mtu lock 1400`],
  },
  'IPv6 default: one without a gateway beside ours': {
    lines: ['-6 route append default dev eth5 table 4025 proto 84'],
  },
  'IPv4 default: one for a type of service': { lines: [`route add tos 0x10 ${IPV4_DEFAULT} mtu lock 1300`] },
  'IPv6 default: one for a source': { lines: ['-6 route add default from fd00:7::/64 dev eth5 table 4025 proto 84'] },
  'in main': { lines: ['route add 192.0.2.0/24 via 10.0.0.1 dev eth0 mtu lock 1400 proto 84'] },
};

const RULE = 'pref 1537 from 10.0.5.5';
const TO_TABLE = 'lookup 4025 proto 84';

const RULES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    [
      ...['iif eth5', 'oif eth5', 'iif gone0', 'tos 0x10', 'uidrange 0-99', 'ipproto tcp', 'ipproto udp sport 53'],
      ...['dport 80-90', 'suppress_prefixlength 0', 'suppress_ifgroup 7', 'tun_id 9', 'realms 3', 'fwmark 0/0x80'],
      ...['fwmark 0x80'],
    ].flatMap((words) => [
      [`${words}, behind ours`, { lines: [`rule add ${RULE} ${words} ${TO_TABLE}`] }],
      [
        `${words}, in the place of ours`,
        // The kernel deletes the first match, which is ours.
        { lines: [`rule add ${RULE} ${words} ${TO_TABLE}`, `rule del ${RULE} ${TO_TABLE}`] },
      ],
    ]),
  ),
  'not, in the place of ours': { lines: [`rule del ${RULE} ${TO_TABLE}`, `rule add not ${RULE} ${TO_TABLE}`] },
  'IPv6: ipproto, in the place of ours': {
    lines: [
      `-6 rule del pref 1537 from fd00:10:0:5::5 ${TO_TABLE}`,
      `-6 rule add pref 1537 from fd00:10:0:5::5 ipproto tcp ${TO_TABLE}`,
    ],
  },
  'without a selector, behind ours': { lines: [`rule add pref 1536 ${TO_TABLE}`] },
  'not, without a selector, behind ours': { lines: [`rule add not pref 1536 ${TO_TABLE}`] },
  'several behind ours': { lines: [`rule add pref 1536 ${TO_TABLE}`, `rule add pref 1536 iif eth5 ${TO_TABLE}`] },
  goto: { lines: ['rule add pref 1536 from 10.0.5.5 goto 32766 proto 84'] },
  blackhole: { lines: ['rule add pref 1024 to 172.31.0.0/24 blackhole proto 84'] },
  nop: { lines: ['rule add pref 1024 nop proto 84'] },
  l3mdev: { lines: ['rule add pref 1280 l3mdev proto 84'] },
};

const IPV4 = '10.0.5.5/32 dev eth5';
const IPV6 = 'fd00:10:0:5::5/128 dev eth5';

/** What no request changes of an address is taken away with it, and with it go the routes of its link. */
const ADDRESSES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    ['valid_lft 600 preferred_lft 500', 'valid_lft 600 preferred_lft 0', 'preferred_lft 0'].flatMap((words) => [
      [`IPv4: ${words}`, { lines: [`address change ${IPV4} ${words}`] }],
      [`IPv6: ${words}`, { lines: [`-6 address change ${IPV6} ${words} nodad noprefixroute`] }],
    ]),
  ),
  ...Object.fromEntries(
    ['scope host', 'scope link', 'broadcast 10.0.5.9', 'noprefixroute'].map((words) => [
      `IPv4: ${words}`,
      { lines: [`address del ${IPV4}`, `address add ${IPV4} ${words}`] },
    ]),
  ),
  ...Object.fromEntries(
    ['nodad', 'noprefixroute', 'nodad noprefixroute home'].map((words) => [
      `IPv6: ${words}`,
      { lines: [`-6 address change ${IPV6} ${words}`] },
    ]),
  ),
  'IPv6: another length': {
    lines: [`-6 address del ${IPV6}`, '-6 address add fd00:10:0:5::5/64 dev eth5 nodad'],
  },
  'IPv6: another end': {
    lines: [`-6 address del ${IPV6}`, '-6 address add fd00:10:0:5::5 peer fd00:10:0:5::9/128 dev eth5 nodad'],
  },
};

const SHORT = [
  'valid_lft',
  'scope host',
  'broadcast',
  'another length',
  'mtu lock 1400',
  'onlink',
  'next hop',
  'blackhole',
  'dport',
  'not',
  'suppress_prefixlength',
  'without',
];

for (const [kind, cases] of Object.entries({ 'a route': ROUTES, 'a rule': RULES, 'an address': ADDRESSES }))
  test(`diffHost: finds what others gave to ${kind} of ours, and takes it away`, async (t) => {
    t.timeout(120_000);
    await withTestNode(async ({ network, enis, ip, reach, kernel }) => {
      const { nft: _nft, ...desired } = planNode(network, enis, []);
      await reach(desired);
      const planned = stateOf(ip);
      const isShort = ([what]: readonly [string, Case]) => SHORT.some((words) => what.includes(words));
      for (const [what, { lines, after = [] }] of partOf(Object.entries(cases), isShort)) {
        for (const line of lines) ip(...line.split(' '));
        t.notDeepEqual(stateOf(ip), planned, `${what}: ip shows nothing of it`);
        const { operations, conflicts } = diffHost(desired, observeNetns(kernel, desired));
        t.not(operations.length, 0, what);
        t.deepEqual(conflicts, [], what);
        await applyOperations(kernel, operations);
        t.deepEqual(stateOf(ip), planned, `${what}: ${operations.map(renderOperation).join('; ')}`);
        t.deepEqual(diffHost(desired, observeNetns(kernel, desired)).operations, [], what);
        for (const line of after) ip(...line.split(' '));
      }
    });
  });

/** Routes of ours in the order of the kernel, all rules, and the addresses of the ENIs but those that the kernel made. */
function stateOf(ip: IpOf): unknown {
  return ['-4', '-6'].map((family) => [
    ['eth5', 'eth6'].map((dev) => ip.json('-d', family, 'address', 'show', 'dev', dev, 'scope', 'global')),
    ip.json('-d', family, 'route', 'show', 'table', 'all', 'proto', '84'),
    ip
      .json('-d', family, 'rule', 'show')
      .map((rule) => JSON.stringify(rule))
      .toSorted(),
  ]);
}
