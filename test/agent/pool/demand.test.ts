import test from 'ava';
import { IpPool } from '../../../agent/pool/ip-pool.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from './supply-sample.ts';

const ips = (subnet: number, count: number) => Array.from({ length: count }, (_, i) => `10.0.${subnet}.${i + 10}`);

function poolWith(freeCount: number, leasedCount: number): IpPool {
  const all = ips(0, freeCount + leasedCount);
  const pool = new IpPool();
  pool.applySupply(sampleSupply([sampleEni('eni-a', all)]));
  pool.adopt(all.slice(0, leasedCount).map((ip, i) => sampleLease(`c${i}`, 'eni-a', [ip])));
  return pool;
}

const row = test.macro(
  (
    t,
    given: { free: number; leased: number; min: number; max: number; limit?: number },
    want: { desired: number; surplus: number },
  ) => {
    const { free, leased, ...warm } = given;
    const got = poolWith(free, leased).demand(warm);
    t.deepEqual({ desired: got.desired, surplus: got.surplus.length }, want);
  },
);

test(
  'demand: asks for the minimum at once when too few are free',
  row,
  { free: 0, leased: 3, min: 5, max: 5 },
  { desired: 8, surplus: 0 },
);
test(
  'demand: asks for what it has when between the targets',
  row,
  { free: 4, leased: 3, min: 2, max: 6 },
  { desired: 7, surplus: 0 },
);
test(
  'demand: gives back what is above the maximum',
  row,
  { free: 9, leased: 3, min: 2, max: 6 },
  { desired: 9, surplus: 3 },
);
test(
  'demand: asks for nothing beyond the limit',
  row,
  { free: 0, leased: 8, min: 5, max: 5, limit: 9 },
  { desired: 9, surplus: 0 },
);
test(
  'demand: gives back what is above the limit',
  row,
  { free: 4, leased: 8, min: 5, max: 5, limit: 9 },
  { desired: 9, surplus: 3 },
);
test('demand: allows no spare at all', row, { free: 1, leased: 1, min: 0, max: 0 }, { desired: 1, surplus: 1 });

test('demand: counts cooling addresses as used and never gives them back', (t) => {
  const pool = poolWith(0, 2);
  pool.release({ key: 'c0/eth0', nowMs: 0, cooldownMs: 100 });
  t.deepEqual(pool.demand({ min: 1, max: 1 }), { desired: 3, used: 2, bound: 2, surplus: [] });
});

test('demand: empties the emptiest ENI first', (t) => {
  const pool = new IpPool();
  pool.applySupply(sampleSupply([sampleEni('eni-a', ips(0, 3)), sampleEni('eni-b', ips(1, 3))]));
  pool.adopt([sampleLease('x', 'eni-a', ['10.0.0.10'])]);
  t.deepEqual(
    pool.demand({ min: 0, max: 1 }).surplus.map((address) => address.ip),
    ['10.0.1.10', '10.0.1.11', '10.0.1.12', '10.0.0.11'],
  );
});

test('demand: of ENIs with as few users empties the one with the fewest addresses, so that the warm ones stay together', (t) => {
  const pool = new IpPool();
  const enis = [sampleEni('eni-a', ips(0, 4)), sampleEni('eni-b', ips(1, 2)), sampleEni('eni-c', ips(2, 3))];
  pool.applySupply(sampleSupply(enis));
  t.deepEqual(
    pool.demand({ min: 4, max: 4 }).surplus.map((address) => address.eniId),
    ['eni-b', 'eni-b', 'eni-c', 'eni-c', 'eni-c'],
  );
});

test('demand: does not count what a draining ENI has free', (t) => {
  const pool = new IpPool();
  pool.applySupply(sampleSupply([sampleEni('eni-a', ips(0, 3), { draining: true })]));
  t.deepEqual(pool.demand({ min: 2, max: 2 }), { desired: 2, used: 0, bound: 0, surplus: [] });
});

test('demand: counts a pair once and gives both back together', (t) => {
  const pool = new IpPool();
  const pair = [sampleAddress('10.0.0.5', { pairedIp: 'fd00::5' }), sampleAddress('fd00::5', { pairedIp: '10.0.0.5' })];
  pool.applySupply(sampleSupply([sampleEni('eni-a', [], { addresses: pair })]));
  const got = pool.demand({ min: 0, max: 0 });
  t.is(got.bound, 1);
  t.deepEqual(
    got.surplus.map((address) => address.ip),
    ['10.0.0.5', 'fd00::5'],
  );
});

test('demand: counts IPv6 addresses on a node that has no others', (t) => {
  const pool = new IpPool();
  pool.applySupply(sampleSupply([sampleEni('eni-a', ['fd00::1', 'fd00::2'])]));
  t.is(pool.demand({ min: 0, max: 1 }).surplus.length, 1);
});
