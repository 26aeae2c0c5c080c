import test from 'ava';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import { DIFFERENCES_CHECK } from '../../../../cli/commands/doctor/check-differences.ts';
import { DEFAULT_ROUTES_CHECK, ENIS_CHECK } from '../../../../cli/commands/doctor/check-enis.ts';
import { FORWARDING_CHECK } from '../../../../cli/commands/doctor/check-forward.ts';
import { MTU_CHECK } from '../../../../cli/commands/doctor/check-mtu.ts';
import { NFT_CHECK } from '../../../../cli/commands/doctor/check-nft.ts';
import { POD_LINKS_CHECK } from '../../../../cli/commands/doctor/check-pod-links.ts';
import { RP_FILTER_CHECK } from '../../../../cli/commands/doctor/check-rp-filter.ts';
import { RULES_CHECK, TABLES_CHECK } from '../../../../cli/commands/doctor/check-rules.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import type { NetnsFacts, NodeFacts } from '../../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../../netlink/link-message.ts';
import type { RouteMessage } from '../../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../../netlink/rule-message.ts';
import { doctorFacts, healthyNode, idsOf, nodeWith, nodeWithSysctl } from './facts.ts';

// Both ways for each check: what disturbs is found, what looks alike and does not disturb is not.

const ROUTE: RouteMessage = { family: 2, tos: 0, protocol: 3, scope: 0, type: 1, flags: 0, table: 254, unknown: [] };
const RULE: RuleMessage = {
  family: 2,
  tos: 0,
  action: 1,
  flags: 0,
  priority: 100,
  table: 254,
  protocol: 3,
  unknown: [],
};
const DEFAULT: RouteMessage = { ...ROUTE, gateway: '10.0.0.1', oif: 2 };

const NO_RECORD: Partial<DoctorFacts> = { differences: unknown('there is no plan', 'start the agent') };

const withRoutes = (...routes: readonly RouteMessage[]) =>
  nodeWith((host) => ({ routes: [...host.routes, ...routes] }));
const withRules = (rules: readonly RuleMessage[], routes: readonly RouteMessage[] = [DEFAULT]) =>
  nodeWith((host) => ({ rules: [...host.rules, ...rules], routes: [...host.routes, ...routes] }));
const withLink = (ifindex: number, change: Partial<LinkMessage>) =>
  nodeWith(({ links }) => ({
    links: links.map((link) => (link.ifindex === ifindex ? { ...link, ...change } : link)),
  }));
const without = (ifindex: number) =>
  nodeWith(({ links }) => ({ links: links.filter((link) => link.ifindex !== ifindex) }));
const address = (host: NetnsFacts, ifindex: number, text: string, prefixlen: number) => {
  const [some] = host.addresses;
  if (some === undefined) throw new Error('the fixture has no addresses');
  return { ...some, ifindex, address: text, local: text, prefixlen, scope: 0 };
};

type Case = readonly [when: string, facts: Partial<DoctorFacts>, finds: readonly string[]];
const node = (facts: NodeFacts): Partial<DoctorFacts> => ({ node: facts });

const CASES: readonly (readonly [Check, readonly Case[]])[] = [
  [
    ENIS_CHECK,
    [
      ['all is well', {}, []],
      ['one is down', node(withLink(3, { flags: 0 })), ['eni-down']],
      ['one has no carrier', node(withLink(3, { carrier: 0 })), ['eni-no-carrier']],
      ['one is gone', node(without(3)), ['eni-detached']],
      [
        'one lost its address',
        node(nodeWith(({ addresses }) => ({ addresses: addresses.filter(({ ifindex }) => ifindex !== 3) }))),
        ['eni-without-address'],
      ],
      [
        'DHCP gave one an address and a route',
        node(
          nodeWith((host) => ({
            addresses: [...host.addresses, address(host, 3, '10.0.1.77', 24)],
            routes: [...host.routes, { ...ROUTE, dst: '10.0.1.0/24', oif: 3, protocol: 2 }],
          })),
        ),
        ['eni-connected-route', 'eni-foreign-address'],
      ],
      [
        'the kernel has its link-local routes',
        node(withRoutes({ ...ROUTE, family: 10, dst: 'fe80::/64', oif: 3, protocol: 2 })),
        [],
      ],
      ['one has another name', node(withLink(3, { ifname: 'ens5' })), ['eni-renamed']],
    ],
  ],
  [
    DEFAULT_ROUTES_CHECK,
    [
      ['there is one', node(withRoutes(DEFAULT)), []],
      ['a backup has a higher metric', node(withRoutes(DEFAULT, { ...DEFAULT, oif: 9, priority: 500 })), []],
      ['two have one metric', node(withRoutes(DEFAULT, { ...DEFAULT, oif: 9 })), ['default-routes']],
      ['it leaves by another interface than recorded', node(withRoutes({ ...DEFAULT, oif: 9 })), ['default-routes']],
    ],
  ],
  [
    POD_LINKS_CHECK,
    [
      ['all is well', {}, []],
      ['one is down', node(withLink(100, { flags: 0 })), ['veth-down']],
      ['one is in another group', node(withLink(100, { group: 4 })), ['link-group-wrong']],
      [
        'a lease has none',
        node({
          ...without(100),
          pods: healthyNode().pods.map((pod) => ({
            ...pod,
            hostIfindex: pod.hostIfindex === 100 ? undefined : pod.hostIfindex,
          })),
        }),
        ['veth-missing'],
      ],
    ],
  ],
  [
    DIFFERENCES_CHECK,
    [
      ['all is well', {}, []],
      ['a host interface is left over', node(withLeftOver()), ['pod-without-lease']],
    ],
  ],
  [
    MTU_CHECK,
    [
      ['all are the same', {}, []],
      ['an ENI takes less than the primary', node(withLink(3, { mtu: 1400 })), ['mtu-mismatch', 'mtu-path']],
      ['an ENI takes more than the primary', node(withLink(3, { mtu: 8500 })), ['mtu-mismatch', 'mtu-path']],
      [
        'a host interface takes less than its Pod sends',
        { ...node(withLink(100, { mtu: 1400 })), ...NO_RECORD },
        ['mtu-mismatch'],
      ],
    ],
  ],
  [
    RULES_CHECK,
    [
      ['there are ours only', node(withRoutes(DEFAULT)), []],
      ['a rule for all leads to main first', node(withRules([RULE])), ['foreign-rule-above-ours']],
      [
        'a rule for a Pod leads to main first',
        node(withRules([{ ...RULE, src: '10.0.1.10/32' }])),
        ['foreign-rule-above-ours'],
      ],
      [
        'a rule drops what Pods send',
        node(withRules([{ ...RULE, action: 6, src: '10.0.0.0/8' }])),
        ['foreign-rule-above-ours'],
      ],
      ['a rule drops ICMP of Pods', node(withRules([{ ...RULE, action: 7, ipProto: 1 }])), ['foreign-rule-above-ours']],
      [
        'a rule drops what goes to one port',
        node(withRules([{ ...RULE, action: 7, ipProto: 6, dportRange: { start: 25, end: 25 } }])),
        ['foreign-rule-above-ours'],
      ],
      ['a rule leads one port to main', node(withRules([{ ...RULE, dportRange: { start: 25, end: 25 } }])), []],
      ['a rule drops what a user sends', node(withRules([{ ...RULE, action: 7, uidRange: { start: 0, end: 9 } }])), []],
      ['a rule for all leads to an empty table', node(withRules([{ ...RULE, table: 52 }])), []],
      ['a rule for all leads to the local table, as Cilium’s', node(withRules([{ ...RULE, table: 255 }])), []],
      [
        'a VPN looks for its networks first, and leaves the VPC out',
        node(
          withRules(
            [{ ...RULE, table: 220 }],
            [
              { ...ROUTE, table: 220, dst: '192.168.77.0/24', oif: 9 },
              { ...ROUTE, table: 220, dst: '10.0.0.0/8', type: 9 },
            ],
          ),
        ),
        [],
      ],
      ['a rule is for others’ addresses', node(withRules([{ ...RULE, src: '192.168.0.0/16' }])), []],
      ['a rule is for what the node itself sends', node(withRules([{ ...RULE, iifname: 'lo' }])), []],
      ['a rule is for another program’s mark', node(withRules([{ ...RULE, fwmark: 0x200, fwmask: 0xf00 }])), []],
      [
        'a VPN takes all that does not have its mark',
        node(
          withRules(
            [{ ...RULE, flags: 2, fwmark: 0xca6c, table: 51820 }],
            [DEFAULT, { ...ROUTE, table: 51820, oif: 9 }],
          ),
        ),
        ['foreign-rule-above-ours'],
      ],
      ['a VPN ignores default routes of main', node(withRules([{ ...RULE, suppressPrefixlength: 0 }])), []],
      ['a rule for all comes after ours', node(withRules([{ ...RULE, priority: 5270 }])), []],
      [
        'a rule stands at a priority of ours',
        node(withRules([{ ...RULE, priority: 1536, src: '192.168.0.0/16' }])),
        ['foreign-rule-priority'],
      ],
      [
        'a rule leads to an ENI’s table',
        node(withRules([{ ...RULE, priority: 2000, src: '192.168.0.0/16', table: 4003 }])),
        ['foreign-rule-to-our-table'],
      ],
    ],
  ],
  [
    TABLES_CHECK,
    [
      ['there are ours only', {}, []],
      [
        'another program has routes in an ENI’s',
        node(withRoutes({ ...ROUTE, table: 4003, dst: '10.9.0.0/16', oif: 2 })),
        ['table-collision'],
      ],
      [
        'another program has routes in a table of its own',
        node(withRoutes({ ...ROUTE, table: 4999, dst: '10.9.0.0/16', oif: 2 })),
        [],
      ],
      [
        'somebody drops what is for a Pod in the Pods’ table',
        node(withRoutes({ ...ROUTE, table: 3999, type: 6, dst: '10.0.1.10/32' })),
        ['blackhole-route'],
      ],
      [
        'a name is registered for the Pods’ table',
        node({ ...healthyNode(), host: { ...healthyNode().host, tableNames: new Map([[3999, 'vpn']]) } }),
        ['table-name-taken'],
      ],
    ],
  ],
  [
    NFT_CHECK,
    [
      ['it is there', {}, []],
      [
        'it is gone',
        node({ ...healthyNode(), host: { ...healthyNode().host, nft: known({ objects: [], ourTable: undefined }) } }),
        ['nft-table-missing'],
      ],
      [
        'a chain is empty',
        node({
          ...healthyNode(),
          host: {
            ...healthyNode().host,
            nft: known({ objects: [], ourTable: 'table inet tke_eni {\n\tchain eni_4003 {\n\t}\n}\n' }),
          },
        }),
        ['nft-table-changed'],
      ],
    ],
  ],
  [
    RP_FILTER_CHECK,
    [
      ['ENIs and primary are loose', {}, []],
      ['an ENI is strict', node(nodeWithSysctl('net.ipv4.conf.eth1.rp_filter', '1')), ['rp-filter-strict']],
      [
        'the primary is off and all is strict',
        node(nodeWithSysctl('net.ipv4.conf.all.rp_filter', '1', nodeWithSysctl('net.ipv4.conf.eth0.rp_filter', '0'))),
        ['rp-filter-strict'],
      ],
      ['all is strict and ours are loose', node(nodeWithSysctl('net.ipv4.conf.all.rp_filter', '1')), []],
    ],
  ],
  [
    FORWARDING_CHECK,
    [
      ['it is on', {}, []],
      ['it is off', node(nodeWithSysctl('net.ipv4.ip_forward', '0')), ['ip-forward-off']],
      ['IPv6’s is off and no Pod has IPv6', node(nodeWithSysctl('net.ipv6.conf.all.forwarding', '0')), []],
      [
        'IPv6’s is off and Pods have IPv6',
        node(nodeWithSysctl('net.ipv6.conf.all.forwarding', '0', healthyNode({ families: [4, 6] }))),
        ['ip-forward-off'],
      ],
      [
        'IPv6 is disabled and Pods have it',
        node(nodeWithSysctl('net.ipv6.conf.all.disable_ipv6', '1', healthyNode({ families: [4, 6] }))),
        ['ipv6-disabled'],
      ],
    ],
  ],
];

for (const [check, cases] of CASES) {
  for (const [when, facts, finds] of cases) {
    const what = finds.length === 0 ? 'finds nothing' : `finds ${finds.join(', ')}`;
    test(`${check.id}: ${what} when ${when}`, (t) => {
      t.deepEqual(idsOf(check, doctorFacts(facts)), finds);
    });
  }
}

function withLeftOver(): NodeFacts {
  return nodeWith(({ links }) => ({
    links: links.flatMap((link) =>
      link.ifindex === 100
        ? [link, { ...link, ifindex: 900, ifname: 'eni0123456789a', ifalias: 'tke-eni/feedfeed/eth0' }]
        : [link],
    ),
  }));
}
