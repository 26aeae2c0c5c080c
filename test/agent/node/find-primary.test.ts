import test from 'ava';
import { findPrimary, type PrimaryEvidence } from '../../../agent/node/find-primary.ts';
import type { HostView } from '../../../agent/node/node-network.ts';

type Facts = {
  /** Name, index, and what is not usual of a link. */
  readonly links?: readonly (readonly [string, number, object?])[];
  readonly addresses?: readonly (readonly [number, string])[];
  /** Device, metric and family of default routes. */
  readonly defaults?: readonly (readonly [number, number, (4 | 6)?])[];
};

const ENI_MAC = '52:54:00:00:00:05';
const LINKS: NonNullable<Facts['links']> = [
  ['lo', 1, { flags: 0x8 }],
  ['eth0', 2],
  ['data0', 3],
  ['eth1', 5, { address: ENI_MAC }],
];

function viewOf({ links = LINKS, addresses = [[2, '10.0.1.2']], defaults = [] }: Facts): HostView {
  return {
    links: links.map(([ifname, ifindex, more]) => ({ ifname, ifindex, flags: 0, ...more })),
    addresses: addresses.map(([ifindex, address]) => ({ ifindex, address, family: address.includes(':') ? 10 : 2 })),
    mainRoutes: defaults.map(([oif, priority, family = 4]) => ({ oif, priority, family: family === 4 ? 2 : 10 })),
  } as unknown as HostView;
}

const finds = test.macro((t, facts: Facts, evidence: Partial<PrimaryEvidence>, name: string | undefined) => {
  t.is(findPrimary(viewOf(facts), { nodeIps: [], ...evidence }, new Set([ENI_MAC]))?.ifname, name);
});

const LOWER = {
  defaults: [
    [3, 50],
    [2, 100],
  ],
} as const satisfies Facts;
const NODE_IP = { nodeIps: ['10.0.1.2'] };
const BEFORE = { known: { ifindex: 2, addresses: ['10.0.1.2', 'fe80::1'] } };

test('findPrimary: nothing known: the default route with the lowest metric', finds, LOWER, {}, 'data0');
test(
  'findPrimary: nothing known: an IPv4 default route before one of IPv6',
  finds,
  {
    defaults: [
      [3, 1, 6],
      [2, 100],
    ],
  },
  {},
  'eth0',
);
test(
  'findPrimary: a default route by an ENI does not count',
  finds,
  {
    defaults: [
      [5, 0],
      [2, 100],
    ],
  },
  {},
  'eth0',
);
test('findPrimary: nothing known, no default route: none', finds, {}, {}, undefined);
test('findPrimary: the InternalIP of the Node before a default route', finds, LOWER, NODE_IP, 'eth0');
test('findPrimary: the InternalIP of the Node without a default route', finds, {}, NODE_IP, 'eth0');
test(
  'findPrimary: the InternalIP of the Node before what was found before',
  finds,
  {
    addresses: [
      [2, '10.0.1.2'],
      [3, '192.168.50.2'],
    ],
  },
  { ...BEFORE, nodeIps: ['192.168.50.2'] },
  'data0',
);
test(
  'findPrimary: an InternalIP that no link has tells nothing',
  finds,
  LOWER,
  { ...BEFORE, nodeIps: ['10.9.9.9'] },
  'eth0',
);
test(
  'findPrimary: an IPv6 InternalIP in another form',
  finds,
  { addresses: [[2, 'fd00::2']] },
  { nodeIps: ['FD00:0::2'] },
  'eth0',
);
test(
  'findPrimary: the IPv4 address before the IPv6 address of the Node',
  finds,
  {
    addresses: [
      [3, 'fd00::2'],
      [2, '10.0.1.2'],
    ],
  },
  { nodeIps: ['fd00::2', '10.0.1.2'] },
  'eth0',
);
test(
  'findPrimary: the InternalIP on an ENI of the supply: the supply is wrong',
  finds,
  { addresses: [[5, '10.0.1.2']] },
  NODE_IP,
  'eth1',
);
test(
  'findPrimary: lo and links of kind dummy are no primary interface',
  finds,
  {
    links: [...LINKS, ['dummy0', 9, { kind: 'dummy' }]],
    addresses: [
      [1, '10.0.1.2'],
      [9, '10.0.1.2'],
    ],
    defaults: [[2, 0]],
  },
  NODE_IP,
  'eth0',
);
test(
  'findPrimary: of two links with the address that of before',
  finds,
  {
    addresses: [
      [3, '10.0.1.2'],
      [2, '10.0.1.2'],
    ],
  },
  { ...BEFORE, ...NODE_IP },
  'eth0',
);
test('findPrimary: known before: a lower metric elsewhere changes nothing', finds, LOWER, BEFORE, 'eth0');
test(
  'findPrimary: known before: its address moved to a bridge above it',
  finds,
  { links: [...LINKS, ['br0', 9, { kind: 'bridge' }]], addresses: [[9, '10.0.1.2']], ...LOWER },
  BEFORE,
  'br0',
);
test(
  'findPrimary: known before: it has another address now',
  finds,
  { addresses: [[2, '10.0.1.77']], ...LOWER },
  BEFORE,
  'eth0',
);
test(
  'findPrimary: known before: it is gone',
  finds,
  { links: LINKS.filter(([name]) => name !== 'eth0'), addresses: [], defaults: [[3, 50]] },
  BEFORE,
  'data0',
);
test(
  'findPrimary: known before the machine booted: the address tells it, an index nothing',
  finds,
  { addresses: [[3, '10.0.1.2']], defaults: [[2, 0]] },
  { known: { addresses: ['10.0.1.2'] } },
  'data0',
);
test(
  'findPrimary: known before: a link-local address tells nothing',
  finds,
  { addresses: [[3, 'fe80::1']], defaults: [[2, 0]] },
  { known: { addresses: ['fe80::1'] } },
  'eth0',
);
test(
  'findPrimary: known before: it is an ENI of the supply now',
  finds,
  { defaults: [[2, 0]] },
  { known: { ifindex: 5, addresses: [] } },
  'eth0',
);
test(
  'findPrimary: configured: that one, whatever else is known',
  finds,
  LOWER,
  { ...BEFORE, ...NODE_IP, configured: 'data0' },
  'data0',
);
test(
  'findPrimary: configured and missing: none',
  finds,
  LOWER,
  { ...BEFORE, ...NODE_IP, configured: 'eth9' },
  undefined,
);
