import test from 'ava';
import { type CheckedEni, refusalsOfEni } from '../../crd/eni-refusals.ts';

const FAMILY = { primaryIp: '10.0.2.2', gateway: '10.0.2.1', subnetCidr: '10.0.2.0/24' };
const FAMILY_V6 = { primaryIp: 'fd00::2', gateway: 'fd00::1', subnetCidr: 'fd00::/64' };
const GOOD: CheckedEni = {
  mac: '20:90:6f:00:00:01',
  families: [FAMILY, FAMILY_V6],
  addresses: ['10.0.2.3', '10.0.2.254', 'fd00::3'],
};
const OWN = {
  addresses: new Set(['10.0.1.2', 'fd01::2']),
  macs: new Map([
    ['52:54:00:00:00:01', "the node's primary interface"],
    ['02:42:00:00:00:01', 'docker0, a bridge'],
  ]),
  peers: new Map([['10.0.1.1', 'the next hop of default']]),
};

const whole = test.macro({
  exec: (t, change: Partial<CheckedEni>, why: RegExp) => {
    t.regex(refusalsOfEni({ ...GOOD, ...change }, OWN).whole ?? 'taken', why);
  },
  title: (title = '') => `refusalsOfEni: refuses the ENI: ${title}`,
});
const family = (change: Partial<typeof FAMILY>): Partial<CheckedEni> => ({ families: [{ ...FAMILY, ...change }] });

test('MAC of the primary interface', whole, { mac: '52:54:00:00:00:01' }, /primary interface/);
test('MAC of a bridge', whole, { mac: '02:42:00:00:00:01' }, /that of docker0, a bridge/);
test(
  'own address is a next hop',
  whole,
  family({ primaryIp: '10.0.1.1', subnetCidr: '10.0.0.0/8' }),
  /its own address 10\.0\.1\.1 is the next hop of default/,
);
test('MAC of lo', whole, { mac: '00:00:00:00:00:00' }, /that of lo/);
test('MAC of a group', whole, { mac: '01:00:5e:00:00:01' }, /group/);
test(
  "own address is the node's",
  whole,
  family({ primaryIp: '10.0.1.2', subnetCidr: '10.0.0.0/16' }),
  /the node's own/,
);
test("gateway is the node's", whole, family({ gateway: '10.0.1.2' }), /its gateway 10\.0\.1\.2 is the node's own/);
test('own address is the gateway', whole, family({ primaryIp: '10.0.2.1' }), /the gateway of/);
test('own address is the network', whole, family({ primaryIp: '10.0.2.0' }), /the network address/);
test('own address is the broadcast', whole, family({ primaryIp: '10.0.2.255' }), /the broadcast address/);
test('own address is loopback', whole, family({ primaryIp: '127.0.0.1' }), /loopback/);
test('subnet is everything', whole, family({ subnetCidr: '0.0.0.0/0' }), /larger than any/);
test('subnet is half of everything', whole, family({ subnetCidr: '0.0.0.0/1' }), /larger than any/);
test('subnet contains metadata', whole, family({ subnetCidr: '169.0.0.0/8' }), /169\.254\.0\.0\/16/);
test('subnet is in multicast', whole, family({ subnetCidr: '239.1.0.0/16' }), /multicast/);
test('subnet of IPv6 is everything', whole, { families: [{ ...FAMILY_V6, subnetCidr: '::/0' }] }, /larger than any/);
test('subnet of IPv6 is link-local', whole, { families: [{ ...FAMILY_V6, subnetCidr: 'fe80::/64' }] }, /link-local/);

const alone = test.macro({
  exec: (t, ip: string, why: RegExp) => {
    const { whole: refused, addresses } = refusalsOfEni({ ...GOOD, addresses: [...GOOD.addresses, ip] }, OWN);
    t.is(refused, undefined);
    t.deepEqual([...addresses.keys()], [ip]);
    t.regex(addresses.get(ip) ?? '', why);
  },
  title: (_title, ip) => `refusalsOfEni: refuses the address alone: ${ip}`,
});

test(alone, '169.254.0.23', /metadata/);
test(alone, '224.0.0.1', /multicast/);
test(alone, '255.255.255.255', /broadcast/);
test(alone, '0.0.0.0', /this network/);
test(alone, '127.0.0.1', /loopback/);
test(alone, '10.0.2.0', /the network address of 10\.0\.2\.0\/24/);
test(alone, '10.0.2.255', /the broadcast address of 10\.0\.2\.0\/24/);
test(alone, '10.0.2.1', /the gateway of 10\.0\.2\.0\/24/);
test(alone, '10.0.1.2', /the node's own/);
test(alone, '10.0.1.1', /the next hop of default/);
test(alone, 'fd00::', /the network address of fd00::\/64/);
test(alone, 'fd00::1', /the gateway of fd00::\/64/);
test(alone, 'fd01::2', /the node's own/);
test(alone, 'fe80::1', /link-local/);
test(alone, 'ff02::1', /multicast/);
test(alone, '::1', /loopback/);
test(alone, '::ffff:10.0.2.9', /IPv4-mapped/);

test("refusalsOfEni: takes what a VPC gives, also in the node's own subnet, in a /30, and in ranges of a CCN", (t) => {
  const takes = (subnetCidr: string, gateway: string, primaryIp: string, addresses: readonly string[]) =>
    t.deepEqual(refusalsOfEni({ mac: GOOD.mac, families: [{ subnetCidr, gateway, primaryIp }], addresses }, OWN), {
      addresses: new Map(),
    });
  takes('10.0.1.0/24', '10.0.1.1', '10.0.1.3', ['10.0.1.4', '10.0.1.254']);
  takes('100.64.0.0/10', '100.64.0.1', '100.64.0.2', ['100.65.0.0', '100.127.255.254']);
  takes('9.0.0.0/16', '9.0.0.1', '9.0.0.2', ['9.0.1.0']);
  takes('198.18.0.0/28', '198.18.0.1', '198.18.0.2', ['198.18.0.14']);
  takes('10.0.2.4/31', '10.0.2.5', '10.0.2.4', []);
  takes('2402:4e00:1::/64', '2402:4e00:1::1', '2402:4e00:1::2', ['2402:4e00:1::ffff']);
});

test('law: of all addresses of a /24, only its ends and the gateway are refused', (t) => {
  for (const subnet of ['10.0.9', '172.16.255', '192.168.0']) {
    const families = [{ primaryIp: `${subnet}.2`, gateway: `${subnet}.1`, subnetCidr: `${subnet}.0/24` }];
    const addresses = Array.from({ length: 256 }, (_, host) => `${subnet}.${host}`);
    const refused = refusalsOfEni({ mac: GOOD.mac, families, addresses }, OWN);
    t.is(refused.whole, undefined);
    t.deepEqual([...refused.addresses.keys()], [`${subnet}.0`, `${subnet}.1`, `${subnet}.255`]);
  }
});
