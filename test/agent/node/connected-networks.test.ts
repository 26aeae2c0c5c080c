import test from 'ava';
import { assumedVpc, connectedNetworks } from '../../../agent/node/connected-networks.ts';
import type { HostView } from '../../../agent/node/node-network.ts';

const LINKS = [
  { ifindex: 1, ifname: 'lo', flags: 0x8 },
  { ifindex: 2, ifname: 'eth0', flags: 1 },
  { ifindex: 5, ifname: 'eth1', flags: 1, address: '52:54:00:00:00:05' },
  { ifindex: 7, ifname: 'docker0', flags: 1 },
  { ifindex: 8, ifname: 'tun0', flags: 1 },
  { ifindex: 20, ifname: 'eniabc', flags: 1, ifalias: 'tke-eni/sandbox/eth0' },
];
const TAKEN = ['10.0.0.0/16', 'fd00:10::/32', '172.31.0.0/24'];

/** Routes as `[destination, link, what else]`; found networks as `network by link`. */
const finds = test.macro((t, routes: readonly (readonly [string, number, object?])[], expected: readonly string[]) => {
  const mainRoutes = routes.map(([dst, oif, more]) => ({ dst, oif, type: 1, protocol: 2, ...more }));
  const view = { links: LINKS, addresses: [], mainRoutes } as unknown as HostView;
  const known = { primaryIfindex: 2, eniMacs: new Set(['52:54:00:00:00:05']), taken: TAKEN };
  t.deepEqual(
    connectedNetworks(view, known).map(
      ({ cidr, ifname, prefsrc }) => `${cidr} by ${ifname}${prefsrc ? ` from ${prefsrc}` : ''}`,
    ),
    expected,
  );
});

test(
  'connectedNetworks: a bridge of containers and a VPN, both families',
  finds,
  [
    ['172.17.0.0/16', 7, { prefsrc: '172.17.0.1' }],
    ['fd50::/64', 7],
    ['10.8.0.1/32', 8],
  ],
  ['10.8.0.1/32 by tun0', '172.17.0.0/16 by docker0 from 172.17.0.1', 'fd50::/64 by docker0'],
);
test(
  'connectedNetworks: a route without a gateway, whoever added it',
  finds,
  [['192.168.9.0/24', 8, { protocol: 3 }]],
  ['192.168.9.0/24 by tun0'],
);
test(
  'connectedNetworks: not those of the primary interface, an ENI, lo, a Pod',
  finds,
  [
    ['192.168.9.0/24', 2],
    ['192.168.8.0/24', 5],
    ['192.168.7.0/24', 1],
    ['192.168.6.7/32', 20],
    ['192.168.5.0/24', 99],
  ],
  [],
);
test('connectedNetworks: not our own routes', finds, [['192.168.9.0/24', 7, { protocol: 84 }]], []);
test(
  'connectedNetworks: not by a gateway, other next hops or refused',
  finds,
  [
    ['192.168.9.0/24', 7, { gateway: '172.17.0.9' }],
    ['192.168.8.0/24', 7, { via: 'fe80::1' }],
    ['192.168.7.0/24', 7, { multipath: [] }],
    ['192.168.6.0/24', 7, { nhId: 3 }],
    ['192.168.5.0/24', 7, { type: 7 }],
    ['192.168.4.0/24', 7, { tos: 8 }],
  ],
  [],
);
test(
  'connectedNetworks: not what is within the VPC or contains it, nor blocks of Pods',
  finds,
  [
    ['10.0.200.0/24', 7],
    ['10.0.0.0/8', 8],
    ['fd00:10:7::/64', 7],
    ['172.31.0.0/16', 7],
  ],
  [],
);
test(
  'connectedNetworks: not link-local and multicast networks',
  finds,
  [
    ['169.254.0.0/16', 7],
    ['fe80::/64', 7],
    ['ff00::/8', 7],
  ],
  [],
);
test(
  'connectedNetworks: not default routes by another name',
  finds,
  [
    ['128.0.0.0/1', 8],
    ['2000::/3', 8],
  ],
  [],
);
test(
  'connectedNetworks: of two routes that with the lower metric',
  finds,
  [
    ['172.17.0.0/16', 7, { priority: 100 }],
    ['172.17.0.0/16', 8, { priority: 50 }],
  ],
  ['172.17.0.0/16 by tun0'],
);

test('assumedVpc: what is configured, else the surroundings of each subnet', (t) => {
  t.deepEqual(assumedVpc(['10.0.0.0/12'], ['10.0.1.0/24']), ['10.0.0.0/12', '10.0.1.0/24']);
  t.deepEqual(assumedVpc([], ['10.0.1.0/24', '172.16.0.0/14', 'fd00:10:0:1::/64']), [
    '10.0.0.0/16',
    '172.16.0.0/14',
    'fd00:10::/48',
  ]);
});
