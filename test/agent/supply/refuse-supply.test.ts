import test from 'ava';
import { leaseKey } from '../../../agent/journal/lease.ts';
import type { Supply, SupplyEni } from '../../../agent/journal/supply.ts';
import type { HostView } from '../../../agent/node/node-network.ts';
import { apiServerOf, nameserversOf } from '../../../agent/node/node-peers.ts';
import { refuseSupply } from '../../../agent/supply/refuse-supply.ts';
import { enisInUse } from '../../../agent/supply/why-contradicted.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const MAC = '20:90:6f:00:00:01';
const ENI: SupplyEni = {
  ...{ eniId: 'eni-1', mac: MAC, attached: true, draining: false },
  primary: [{ family: 4, ip: '10.0.2.2', gateway: '10.0.2.1', subnetCidr: '10.0.0.0/8' }],
  addresses: [],
};

type Link = HostView['links'][number];
type Address = HostView['addresses'][number];

const ETH0 = { ifindex: 2, ifname: 'eth0', address: '52:54:00:00:00:01' };

function hostOf(
  links: readonly Partial<Link>[],
  addresses: readonly Partial<Address>[] = [],
  routes: readonly Partial<HostView['mainRoutes'][number]>[] = [],
): HostView {
  const primaryRoute = { family: 2, gateway: '10.0.1.1', oif: 2 };
  return {
    links: [ETH0, ...links] as readonly Link[],
    addresses: [{ ifindex: 2, family: 2, address: '10.0.1.2', prefixlen: 24 }, ...addresses] as readonly Address[],
    mainRoutes: [primaryRoute, ...routes] as HostView['mainRoutes'],
  };
}

function refusalsOf(host: HostView, ips: readonly string[] = [], servers?: ReadonlyMap<string, string>): string {
  const addresses = ips.map((ip) => ({ ip, state: 'assigned' }) as unknown as SupplyEni['addresses'][number]);
  const supply = { nodeName: 'n1', epoch: 1, enis: [{ ...ENI, addresses }] } as unknown as Supply;
  return refuseSupply(supply, host, servers === undefined ? {} : { servers })
    .refusals.map(({ text }) => text)
    .join('; ');
}

const NIC = { ifindex: 5, ifname: 'eth1', address: MAC };
const on = (address: string, prefixlen: number, more: Partial<Address> = {}) => ({
  ...{ ifindex: 5, family: address.includes(':') ? 10 : 2, address, prefixlen, scope: 0, flags: 0x80 },
  ...more,
});

const link = test.macro({
  exec: (t, links: readonly Partial<Link>[], addresses: readonly Partial<Address>[], why: RegExp | '') => {
    const found = refusalsOf(hostOf(links, addresses));
    if (why === '') t.is(found, '');
    else t.regex(found, why);
  },
  title: (title = '') => `refuseSupply: the link with the ENI's MAC: ${title}`,
});

for (const kind of ['bridge', 'bond', 'vlan', 'macvlan', 'ipvlan', 'vxlan', 'tun', 'dummy', 'ifb']) {
  test(`refused: a ${kind}`, link, [{ ...NIC, kind }], [], new RegExp(`that of eth1, of kind ${kind}`));
}
test('refused: address of others', link, [NIC], [on('192.0.2.1', 24)], /eth1, which has the address 192\.0\.2\.1/);
test('refused: a veth with an address of others', link, [{ ...NIC, kind: 'veth' }], [on('192.0.2.1', 32)], /192\.0\.2/);
test('refused: a port of a bridge', link, [{ ...NIC, kind: 'veth', master: 9 }], [], /a port of another link/);
test('taken: hardware', link, [NIC], [], '');
test('taken: a veth', link, [{ ...NIC, kind: 'veth' }], [on('fe80::1', 64, { scope: 253 })], '');
test('taken: no link yet', link, [], [], '');
test("taken: a DHCP client's address", link, [NIC], [on('10.0.2.2', 24)], '');
test('taken: an address of a router advertisement', link, [NIC], [on('fd00::9', 64, { flags: 0 })], '');
test(
  'taken: in use as that ENI, whatever else somebody added',
  link,
  [{ ...NIC, kind: 'veth', master: 9 }],
  [on('10.0.2.2', 32), on('192.0.2.1', 24)],
  '',
);
test(
  'taken: hardware below a bridge with its MAC',
  link,
  [{ ifindex: 4, ifname: 'br0', address: MAC, kind: 'bridge' }, NIC],
  [on('172.17.0.1', 16, { ifindex: 4 })],
  '',
);

test('refuseSupply: refuses the address of what the node sends packets to', (t) => {
  const host = hostOf(
    [NIC],
    [],
    [
      { family: 2, dst: '198.51.100.0/24', multipath: [{ oif: 2, gateway: '10.0.1.7' }] as never, protocol: 3 },
      { family: 2, dst: '198.51.101.0/24', gateway: '10.0.1.8', protocol: 84 },
    ],
  );
  const servers = new Map([...nameserversOf('# x\nnameserver 10.0.0.53\n'), ...apiServerOf('https://10.0.0.6:6443')]);
  const found = refusalsOf(host, ['10.0.1.1', '10.0.1.7', '10.0.1.8', '10.0.0.53', '10.0.0.6', '10.0.0.7'], servers);
  t.is(
    found,
    [
      "address 10.0.1.1 refused: it is the next hop of the node's route default",
      "address 10.0.1.7 refused: it is the next hop of the node's route 198.51.100.0/24",
      'address 10.0.0.53 refused: it is a name server of the node',
      'address 10.0.0.6 refused: it is the API server',
    ].join('; '),
  );
  t.deepEqual([...apiServerOf('https://api.example:6443'), ...apiServerOf('')], []);
});

test("refuseSupply: refuses the gateway of another ENI, but not a gateway outside its ENI's subnet", (t) => {
  const other = (gateway: string): SupplyEni => ({
    ...{ ...ENI, eniId: 'eni-2', mac: '20:90:6f:00:00:02' },
    primary: [{ family: 4, ip: '10.0.9.2', gateway, subnetCidr: '10.0.9.0/24' }],
  });
  const refusals = (gateway: string) => {
    const addresses = [{ ip: gateway, state: 'assigned' }] as unknown as SupplyEni['addresses'];
    const supply = { nodeName: 'n1', epoch: 1, enis: [{ ...ENI, addresses }, other(gateway)] } as unknown as Supply;
    return refuseSupply(supply, hostOf([NIC])).refusals.map(({ text }) => text);
  };
  t.deepEqual(refusals('10.0.9.1'), ['address 10.0.9.1 refused: it is the gateway of 10.0.9.0/24']);
  t.deepEqual(refusals('10.0.8.1'), []);
});

test('refuseSupply: an address that we added to another link is free once the supply names that link no more', (t) => {
  const links = [NIC, { ifindex: 6, ifname: 'docker0', address: '02:42:00:00:00:01' }];
  const host = hostOf(links, [on('10.0.2.2', 32, { ifindex: 6 })]);
  const supply = { nodeName: 'n1', epoch: 1, enis: [ENI] } as unknown as Supply;
  const refused = (added: readonly { ifindex: number; prefix: string }[], enis = supply.enis) =>
    refuseSupply({ ...supply, enis }, host, { added }).refusals.map(({ eniId, text }) => `${eniId} ${text}`);
  t.deepEqual(refused([{ ifindex: 6, prefix: '10.0.2.2/32' }]), []);
  const why = "eni-1 refused: its own address 10.0.2.2 is the node's own";
  t.deepEqual(refused([]), [why]);
  const other = { ...ENI, eniId: 'eni-2', mac: '02:42:00:00:00:01' };
  t.deepEqual(refused([{ ifindex: 6, prefix: '10.0.2.2/32' }], [ENI, other]), [why]);
});

test('refuseSupply: takes a link whose only address is one that we added, for another supply', (t) => {
  const host = hostOf([NIC], [on('10.0.2.99', 32)]);
  const supply = { nodeName: 'n1', epoch: 1, enis: [ENI] } as unknown as Supply;
  t.deepEqual(refuseSupply(supply, host, { added: [{ ifindex: 5, prefix: '10.0.2.99/32' }] }).refusals, []);
});

test('refuseSupply: refuses an ENI that contradicts one that Pods use', (t) => {
  const host = hostOf([NIC, { ifindex: 6, ifname: 'eth2', address: '20:90:6f:00:00:02' }]);
  const inUse = [{ eniId: 'eni-1', mac: MAC }];
  const refusals = (eni: Partial<SupplyEni>, view = host) => {
    const supply = { nodeName: 'n1', epoch: 1, enis: [{ ...ENI, ...eni }] } as unknown as Supply;
    return refuseSupply(supply, view, { inUse }).refusals.map(({ text }) => text);
  };
  t.deepEqual(refusals({}), []);
  t.deepEqual(refusals({ eniId: 'eni-2', mac: '20:90:6f:00:00:02' }), [], 'another ENI with its own MAC');
  const nowhere = '20:90:6f:ff:ff:fe';
  t.deepEqual(refusals({ mac: nowhere }), [`refused: its MAC is ${MAC} (eth1, which Pods use), and not ${nowhere}`]);
  t.is(refusals({ mac: '20:90:6f:00:00:02' }).length, 1, 'nor may it go to another link');
  t.deepEqual(refusals({ mac: nowhere }, hostOf([])), [], 'its link is gone');
  t.deepEqual(refusals({ eniId: 'eni-invented' }), [`refused: its MAC ${MAC} is that of eni-1 (eth1, which Pods use)`]);
});

test('enisInUse: the shared ENIs of leases, without those that no supply named', (t) => {
  const record = (eniId: string, slot: number) => ({ eniId, mac: MAC, table: 4000 + slot, slot });
  const records = ['eni-1', 'eni-2', 'unknown-table-4003'].map((eniId, at) => record(eniId, at + 1));
  const eniRecords = new Map(records.map((one) => [one.eniId, one]));
  const leases = new Map(
    ['eni-1', 'unknown-table-4003', 'pod-cidr:10.9.0.0/24'].map((eniId) => {
      const lease = sampleLease(eniId, eniId, ['10.0.0.5']);
      return [leaseKey({ containerId: eniId, ifName: 'eth0' }), lease] as const;
    }),
  );
  t.deepEqual(
    enisInUse({ leases, eniRecords }).map(({ eniId }) => eniId),
    ['eni-1'],
  );
});

test('refuseSupply: an address on a link of the node is of the node, or of Pods that another program wires', (t) => {
  const CILIUM_HOST = { ifindex: 9, ifname: 'cilium_host', kind: 'veth', address: '0a:58:00:00:00:0c' };
  const addressed = (address: string, prefixlen: number, ifindex = 9) =>
    hostOf([NIC, CILIUM_HOST], [on(address, prefixlen, { ifindex })]);
  const refused = (host: HostView, arePodsOfOthers: boolean) => {
    const addresses = [{ ip: '10.0.2.7', state: 'assigned' } as unknown as SupplyEni['addresses'][number]];
    const supply = { nodeName: 'n1', epoch: 1, enis: [{ ...ENI, addresses }] } as unknown as Supply;
    return refuseSupply(supply, host, { arePodsOfOthers }).refusals.map(({ ip }) => ip);
  };
  t.deepEqual(refused(addressed('10.0.2.7', 32), false), ['10.0.2.7']);
  t.deepEqual(refused(addressed('10.0.2.7', 32), true), [], "Cilium's router has an address of the pool");
  t.deepEqual(refused(addressed('10.0.2.7', 24), true), ['10.0.2.7'], 'a network of the node');
  t.deepEqual(refused(addressed('10.0.2.7', 32, ETH0.ifindex), true), ['10.0.2.7'], 'the primary interface');
});

test('enisInUse: with the role uplinks those that have addresses', (t) => {
  const eniRecords = new Map([['eni-1', { eniId: 'eni-1', mac: MAC, table: 4001, slot: 1 }]]);
  const supplyOf = (ips: readonly string[]) =>
    ({ enis: [{ ...ENI, addresses: ips.map((ip) => ({ ip })) }] }) as unknown as Supply;
  const ofRole = (role: 'full' | 'uplinks', ips: readonly string[]) =>
    enisInUse({ role, supply: supplyOf(ips), leases: new Map(), eniRecords }).map(({ eniId }) => eniId);
  t.deepEqual(ofRole('uplinks', ['10.0.2.7']), ['eni-1']);
  t.deepEqual(ofRole('uplinks', []), []);
  t.deepEqual(ofRole('full', ['10.0.2.7']), []);
});

test('refuseSupply: the primary interface is the one with the InternalIP of the Node, whatever has a default route', (t) => {
  const named = { ...ENI, mac: ETH0.address };
  const supply = { nodeName: 'n1', epoch: 1, enis: [named] } as unknown as Supply;
  const host = { ...hostOf([{ ifindex: 3, ifname: 'data0', address: '52:54:00:00:00:09' }]), mainRoutes: [] };
  const refused = (nodeIps: readonly string[]) =>
    refuseSupply(supply, host, { primary: { nodeIps } })
      .refusals.map(({ text }) => text)
      .join();
  t.regex(refused(['10.0.1.2']), /that of the node's primary interface/);
  t.notRegex(refused([]), /primary interface/);
});
