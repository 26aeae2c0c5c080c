import test from 'ava';
import { blockOfAddress, formerBlocks, podCidrSupply, usableBlocks } from '../../../agent/pod-cidr/pod-cidr-supply.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const addressesOf = (cidr: string): readonly string[] =>
  podCidrSupply([cidr]).enis.flatMap(({ addresses }) => addresses.map(({ ip }) => ip));

for (const [cidr, first, last, count] of [
  ['192.168.0.64/26', '192.168.0.66', '192.168.0.126', 61],
  ['172.20.0.0/24', '172.20.0.2', '172.20.0.254', 253],
  ['10.0.0.252/30', '10.0.0.254', '10.0.0.254', 1],
  ['10.0.0.0/31', undefined, undefined, 0],
  ['10.0.0.7/32', undefined, undefined, 0],
  ['10.0.0.1/24', undefined, undefined, 0],
  ['fd00::/64', undefined, undefined, 0],
  ['nonsense', undefined, undefined, 0],
] as const) {
  test(`podCidrSupply: ${cidr} has ${count} addresses for Pods`, (t) => {
    const addresses = addressesOf(cidr);
    t.deepEqual([addresses[0], addresses.at(-1), addresses.length], [first, last, count]);
    t.is(new Set(addresses).size, count);
    t.deepEqual(usableBlocks([cidr]), count === 0 ? [] : [cidr]);
  });
}

test('podCidrSupply: of a very large block only the first addresses are used', (t) => {
  const addresses = addressesOf('10.0.0.0/8');
  t.deepEqual([addresses[0], addresses.at(-1)], ['10.0.0.2', '10.0.8.1']);
});

test('blockOfAddress: finds the block of an address', (t) => {
  const blocks = ['172.20.0.0/26', '172.20.0.64/26'];
  t.is(blockOfAddress('172.20.0.63', blocks), '172.20.0.0/26');
  t.is(blockOfAddress('172.20.0.64', blocks), '172.20.0.64/26');
  t.is(blockOfAddress('172.20.0.128', blocks), undefined);
});

test('formerBlocks: a block stays while a lease lives in it, whatever its state', (t) => {
  const lease = (cidr: string, state: 'active' | 'releasing') =>
    sampleLease(cidr, `pod-cidr:${cidr}`, [], { plugin: 'bridge', state, block: { cidr, wiring: 'bridge' } });
  const leases = [
    lease('172.20.0.0/26', 'active'),
    lease('172.20.0.64/26', 'releasing'),
    lease('172.20.1.0/26', 'active'),
    sampleLease('c', 'eni-a', ['10.0.0.1']),
  ];
  t.deepEqual(formerBlocks(['172.20.1.0/26'], leases), ['172.20.0.0/26', '172.20.0.64/26']);
  t.deepEqual(formerBlocks([], []), []);
});
