import test from 'ava';
import { parse } from 'yaml';
import type { HostView } from '../../../agent/node/node-network.ts';
import { refuseSupply } from '../../../agent/supply/refuse-supply.ts';
import { supplyOfConfig } from '../../../agent/supply/supply-of-config.ts';
import type { FieldTable } from '../../../crd/field.ts';
import { nodeEniConfig } from '../../../crd/node-eni-config.ts';
import { NODE_ENI_CONFIG_KIND } from '../../../crd/node-eni-config-fields.ts';
import { ConfigError, decodeOrThrow } from '../../../runtime/decode.ts';

/** A server on the internet that the node talks to. */
const OUTSIDE = { ip: '203.0.113.80', gateway: '203.0.113.1', cidr: '203.0.113.0/24' };
const OUTSIDE_V6 = { ip: '2606:4700::80', gateway: '2606:4700::1', cidr: '2606:4700::/64' };

const NEC = `
apiVersion: networking.tke.cloud.tencent.com/v1
kind: NodeENIConfig
metadata: {name: n1}
status:
  eniInfos:
    - {eniID: eni-1, mac: '20:90:6f:00:00:01', state: Attached, assignmentID: a,
       primaryIP: 10.0.2.2, gateway: 10.0.2.1, subnetCIDR: 10.0.2.0/24,
       primaryIPv6: 'fd00:2::2', gatewayIPv6: 'fd00:2::1', subnetIPv6CIDR: 'fd00:2::/64',
       addresses: [{ip: 10.0.2.9, assignmentID: a, state: Assigned, pairedIP: 'fd00:2::9'},
                   {ip: 'fd00:2::9', assignmentID: a, state: Assigned}]}
    - {eniID: eni-2, mac: '20:90:6f:00:00:02', state: Attached, assignmentID: a,
       primaryIP: 10.0.3.2, gateway: 10.0.3.1, subnetCIDR: 10.0.3.0/24,
       addresses: [{ip: 10.0.3.9, assignmentID: a, state: Assigned}]}
    - {eniID: eni-3, mac: '20:90:6f:00:00:03', state: Attached, assignmentID: a, mode: direct-eni,
       primaryIP: 10.0.3.3, gateway: 10.0.3.1, subnetCIDR: 10.0.3.0/24}
loadBalancers: {registeredIPs: [10.0.2.9]}
`;

/** Whole networks of a public server, with all addresses of the ENI in them: nothing else is wrong with it. */
const publicV4 = (prefix: string, network: string) => ({
  subnetCIDR: `${network}/${prefix}`,
  primaryIP: '203.0.113.79',
  gateway: OUTSIDE.gateway,
});
const PUBLIC_V6 = {
  ...{ subnetIPv6CIDR: OUTSIDE_V6.cidr, primaryIPv6: '2606:4700::79', gatewayIPv6: OUTSIDE_V6.gateway },
};
const pods = (...ips: readonly string[]) => ips.map((ip) => ({ ip, assignmentID: 'a', state: 'Assigned' }));

/** Changes of one ENI (`eni-1` but where named) and what happens; `whole`: nothing of the ENI is taken. */
type Row = {
  readonly fields: readonly string[];
  readonly eni?: 0 | 1 | 2;
  readonly change: Readonly<Record<string, unknown>>;
  readonly object?: RegExp;
  readonly whole?: RegExp;
  readonly address?: RegExp;
};

const V4 = ['subnetCIDR', 'primaryIP', 'gateway', 'addresses.ip'];
const V6 = ['subnetIPv6CIDR', 'primaryIPv6', 'gatewayIPv6', 'addresses.ip'];
const ROWS: Readonly<Record<string, Row>> = {
  'a public /24': {
    ...{ fields: V4, eni: 1, whole: /its subnet 203\.0\.113\.0\/24 is outside the VPC: .*--vpc-cidr/ },
    change: { ...publicV4('24', '203.0.113.0'), addresses: pods(OUTSIDE.ip) },
  },
  'a public /8': {
    ...{ fields: V4, eni: 1, whole: /its subnet 203\.0\.0\.0\/8 is outside the VPC/ },
    change: { ...publicV4('8', '203.0.0.0'), addresses: pods(OUTSIDE.ip) },
  },
  'a public subnet without Pod addresses': {
    ...{ fields: V4, eni: 1, whole: /outside the VPC/ },
    change: { ...publicV4('24', '203.0.113.0'), addresses: [] },
  },
  'the whole ENI of a Pod is the server': {
    ...{ fields: V4, eni: 2, whole: /outside the VPC/ },
    change: { ...publicV4('24', '203.0.113.0'), primaryIP: OUTSIDE.ip },
  },
  'a network around a private range': {
    ...{ fields: ['subnetCIDR'], eni: 1, whole: /its subnet 172\.0\.0\.0\/8 is outside the VPC/ },
    change: {
      subnetCIDR: '172.0.0.0/8',
      primaryIP: '172.16.0.2',
      gateway: '172.16.0.1',
      addresses: pods('172.64.0.1'),
    },
  },
  'a public /64 of IPv6': {
    ...{ fields: V6, whole: /its subnet 2606:4700::\/64 is outside the VPC/ },
    change: { ...PUBLIC_V6, addresses: pods('10.0.2.9', OUTSIDE_V6.ip) },
  },
  'a public /32 of IPv6': {
    ...{ fields: V6, whole: /its subnet 2606:4700::\/32 is outside the VPC/ },
    change: { ...PUBLIC_V6, subnetIPv6CIDR: '2606:4700::/32', addresses: pods(OUTSIDE_V6.ip) },
  },
  'IPv4 in IPv6 by a translator (NAT64)': {
    ...{ fields: V6, whole: /outside the VPC/ },
    change: {
      ...{ subnetIPv6CIDR: '64:ff9b::/96', primaryIPv6: '64:ff9b::2', gatewayIPv6: '64:ff9b::1' },
      addresses: pods('64:ff9b::cb00:7150'),
    },
  },
  'a Pod address outside its subnet': {
    ...{ fields: ['addresses.ip'], object: /addresses\[0\]\.ip.*in subnetCIDR 10\.0\.2\.0\/24/ },
    change: { addresses: pods(OUTSIDE.ip) },
  },
  'a Pod address of IPv6 outside its subnet': {
    ...{ fields: ['addresses.ip'], object: /addresses\[0\]\.ip.*in subnetIPv6CIDR fd00:2::\/64/ },
    change: { addresses: pods(OUTSIDE_V6.ip) },
  },
  'a Pod address of a family that the ENI has not': {
    ...{ fields: ['addresses.ip'], eni: 1, object: /no IPv6 address/ },
    change: { addresses: pods('fd00:2::99') },
  },
  'a partner that is no address of the ENI': {
    ...{ fields: ['addresses.pairedIP'], object: /pairedIP/ },
    change: { addresses: [{ ...pods('10.0.2.9')[0], pairedIP: OUTSIDE_V6.ip }] },
  },
  'a gateway outside the subnet': {
    ...{ fields: ['gateway'], object: /gateway.*in subnetCIDR/ },
    change: { gateway: OUTSIDE.gateway },
  },
  'a gateway of IPv6 outside the subnet': {
    ...{ fields: ['gatewayIPv6'], object: /gatewayIPv6.*in subnetIPv6CIDR/ },
    change: { gatewayIPv6: OUTSIDE_V6.gateway },
  },
  'an own address outside the subnet': {
    ...{ fields: ['primaryIP'], object: /primaryIP.*in subnetCIDR/ },
    change: { primaryIP: OUTSIDE.ip },
  },
  'an own address of IPv6 outside the subnet': {
    ...{ fields: ['primaryIPv6'], object: /primaryIPv6.*in subnetIPv6CIDR/ },
    change: { primaryIPv6: OUTSIDE_V6.ip },
  },
  'a gateway that is the broadcast address': {
    ...{ fields: ['gateway'], whole: /its gateway 10\.0\.2\.255 is the broadcast address/ },
    change: { gateway: '10.0.2.255' },
  },
  'a gateway that is the network address': {
    ...{ fields: ['gateway'], whole: /its gateway 10\.0\.2\.0 is the network address/ },
    change: { gateway: '10.0.2.0' },
  },
  "a gateway that is the node's": {
    ...{ fields: ['gateway', 'subnetCIDR'], whole: /its gateway 10\.0\.1\.2 is the node's own/ },
    change: { gateway: '10.0.1.2', subnetCIDR: '10.0.0.0/16' },
  },
  "the node's address": {
    ...{ fields: ['addresses.ip', 'subnetCIDR'], address: /10\.0\.1\.2 refused: it is the node's own/ },
    change: { subnetCIDR: '10.0.0.0/16', addresses: pods('10.0.1.2') },
  },
  "the node's gateway": {
    ...{ fields: ['addresses.ip', 'subnetCIDR'], address: /10\.0\.1\.1 refused: it is the next hop/ },
    change: { subnetCIDR: '10.0.0.0/16', addresses: pods('10.0.1.1') },
  },
  'the gateway of another ENI': {
    ...{ fields: ['addresses.ip', 'subnetCIDR'], address: /10\.0\.3\.1 refused: it is the gateway of 10\.0\.3\.0\/24/ },
    change: { subnetCIDR: '10.0.0.0/16', addresses: pods('10.0.3.1') },
  },
  'an address of another ENI': {
    ...{ fields: ['addresses.ip'], object: /addresses\[0\]\.ip.*not at status\.eniInfos\[0\]\.addresses/ },
    ...{ eni: 1, change: { subnetCIDR: '10.0.0.0/16', addresses: pods('10.0.2.9') } },
  },
  'the own address of another ENI, as a whole ENI': {
    ...{ fields: ['primaryIP'], eni: 2, object: /primaryIP.*not at status\.eniInfos\[1\]\.primaryIP/ },
    change: { primaryIP: '10.0.3.2' },
  },
  'multicast, loopback and link-local': {
    ...{ fields: ['subnetCIDR'], whole: /multicast/ },
    change: { subnetCIDR: '224.0.0.0/8', primaryIP: '224.0.0.2', gateway: '224.0.0.1', addresses: [] },
  },
  'link-local of IPv6': {
    ...{ fields: V6, whole: /link-local/ },
    change: { subnetIPv6CIDR: 'fe80::/64', primaryIPv6: 'fe80::2', gatewayIPv6: 'fe80::1', addresses: pods('fe80::9') },
  },
  'the MAC of the primary interface': {
    ...{ fields: ['mac'], whole: /primary interface/ },
    change: { mac: '52:54:00:00:00:01' },
  },
};

const HOST = {
  links: [
    { ifindex: 2, ifname: 'eth0', address: '52:54:00:00:00:01' },
    ...[1, 2, 3].map((at) => ({ ifindex: 2 + at, ifname: `eth${at}`, address: `20:90:6f:00:00:0${at}` })),
  ],
  addresses: [{ ifindex: 2, family: 2, address: '10.0.1.2', prefixlen: 24 }],
  mainRoutes: [{ family: 2, gateway: '10.0.1.1', oif: 2 }],
} as unknown as HostView;

const EVIDENCE = { primary: { nodeIps: ['10.0.1.2'] } };

type Nec = { status: { eniInfos: Record<string, unknown>[] } };

function supplyOf(object: unknown) {
  return supplyOfConfig(decodeOrThrow(nodeEniConfig, object, 'nec'));
}

function necWith({ eni = 0, change }: Pick<Row, 'eni' | 'change'>): Nec {
  const nec: Nec = parse(NEC);
  nec.status.eniInfos[eni] = { ...nec.status.eniInfos[eni], ...change };
  return nec;
}

test('refuseSupply: takes a good NodeENIConfig whole', (t) => {
  const supply = supplyOf(parse(NEC));
  t.deepEqual(refuseSupply(supply, HOST, EVIDENCE), { supply, refusals: [] });
});

for (const [name, row] of Object.entries(ROWS)) {
  test(`refuseSupply: a hostile NodeENIConfig: ${name}`, (t) => {
    const nec = necWith(row);
    const eniId = `eni-${(row.eni ?? 0) + 1}`;
    if (row.object !== undefined) {
      const error = t.throws(() => supplyOf(nec), { instanceOf: ConfigError });
      t.regex(error.message, row.object);
      return;
    }
    const { supply, refusals } = refuseSupply(supplyOf(nec), HOST, EVIDENCE);
    const taken = [...supply.enis, ...(supply.direct?.enis ?? [])];
    const found = refusals.filter((one) => one.eniId === eniId && (one.ip === undefined) === (row.whole !== undefined));
    t.regex(found.map(({ text }) => text).join(), row.whole ?? row.address ?? /^$/);
    t.is(
      taken.some((eni) => eni.eniId === eniId),
      row.whole === undefined,
    );
    t.true(taken.length >= 2, 'the other ENIs serve');
    t.notRegex(JSON.stringify(supply), /203\.0\.113|2606:4700|64:ff9b/);
  });
}

test('refuseSupply: every field of status.eniInfos that takes an address has a hostile value in the table', (t) => {
  const eniInfos = NODE_ENI_CONFIG_KIND.fields['status']?.value.fields?.['eniInfos']?.value.fields ?? {};
  const listed = new Set(Object.values(ROWS).flatMap(({ fields }) => fields));
  const fields = addressFields(eniInfos);
  t.true(fields.includes('addresses.pairedIP'));
  t.deepEqual(
    fields.filter((field) => !listed.has(field)),
    [],
  );
});

test('refuseSupply: no other field of a NodeENIConfig that takes an address is part of the plan', (t) => {
  const others = addressFields(NODE_ENI_CONFIG_KIND.fields).filter((path) => !path.startsWith('status.eniInfos.'));
  t.deepEqual(others, ['spec.releasableIPs.ip', 'status.intents.ips', 'loadBalancers.registeredIPs']);
  const nec = parse(NEC);
  nec.loadBalancers.registeredIPs = [OUTSIDE.ip];
  nec.spec = { releasableIPs: [{ ip: OUTSIDE.ip, assignmentID: 'a' }] };
  const { registeredIps, ...rest } = supplyOf(nec);
  t.deepEqual(registeredIps, [OUTSIDE.ip], 'addresses that no Pod gets');
  t.notRegex(JSON.stringify(rest), /203\.0\.113/);
});

test('refuseSupply: --vpc-cidr allows a VPC outside the private ranges, and no more than it names', (t) => {
  const refused = (vpcCidrs: readonly string[], subnet: string) => {
    const at = (last: number) => subnet.replace(/\d+\/\d+$/, String(last));
    const change = { subnetCIDR: subnet, primaryIP: at(2), gateway: at(1), addresses: pods(at(9)) };
    return refuseSupply(supplyOf(necWith({ eni: 1, change })), HOST, { ...EVIDENCE, vpcCidrs }).refusals.length;
  };
  for (const subnet of ['9.1.2.0/24', '11.0.3.0/24', '30.1.0.0/24']) {
    t.is(refused([], subnet), 1, subnet);
    t.is(refused([subnet.replace(/\..*/, '.0.0.0/8')], subnet), 0, subnet);
    t.is(refused([subnet.replace(/\/24$/, '/25')], subnet), 1, `half of ${subnet}`);
  }
  for (const subnet of ['10.255.0.0/24', '172.31.0.0/24', '192.168.9.0/24', '100.64.9.0/24'])
    t.is(refused(['11.0.0.0/8'], subnet), 0, subnet);
});

test("refuseSupply: takes ENIs of the node's own VPC, whatever its range", (t) => {
  const change = { subnetCIDR: '11.0.3.0/24', primaryIP: '11.0.3.2', gateway: '11.0.3.1', addresses: pods('11.0.3.9') };
  const supply = supplyOf(necWith({ eni: 1, change }));
  const host = {
    ...HOST,
    addresses: [{ ifindex: 2, family: 2, address: '11.0.1.2', prefixlen: 24 }],
  } as unknown as HostView;
  t.deepEqual(refuseSupply(supply, host, { primary: { nodeIps: ['11.0.1.2'] } }).refusals, []);
  const withoutAddress = { ...host, addresses: [] };
  t.deepEqual(refuseSupply(supply, withoutAddress, { primary: { nodeIps: ['11.0.1.2'] } }).refusals, []);
});

test('refuseSupply: an address of the primary interface from a CiliumNode is in the VPC', (t) => {
  const addresses = ['10.0.1.9', OUTSIDE.ip].map((ip) => ({ ip, family: 4, assignmentId: '', state: 'assigned' }));
  const onLink = { eniId: 'on-link', mac: '', primary: [], attached: true, draining: false, addresses };
  const supply = { nodeName: 'n1', epoch: 0, enis: [onLink], warm: { min: 0, max: 0 } } as never;
  const { refusals, supply: taken } = refuseSupply(supply, HOST, EVIDENCE);
  t.deepEqual(
    refusals.map(({ ip }) => ip),
    [OUTSIDE.ip],
  );
  t.deepEqual(
    taken.enis[0]?.addresses.map(({ ip }) => ip),
    ['10.0.1.9'],
  );
});

/** Lists the fields whose values are addresses, networks or MACs, by path. */
function addressFields(table: FieldTable): readonly string[] {
  return Object.entries(table).flatMap(([name, { value }]) => {
    if (value.fields !== undefined) return addressFields(value.fields).map((path) => `${name}.${path}`);
    return /ipv4|ipv6|cidr|:\)\{5\}/.test(JSON.stringify(value.schema)) ? [name] : [];
  });
}
