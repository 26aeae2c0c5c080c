import test from 'ava';
import { fewestCalls, leastSeconds } from '../../bench/ipamd/lower-bound.ts';

test('fewestCalls: counts creations, attachments and assignments of ten', (t) => {
  const eightCores = { ipsPerEni: 19, enisPerNode: 5 };
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 5 }), { create: 1, attach: 1, assign: 0 });
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 10 }), { create: 1, attach: 1, assign: 0 });
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 11 }), { create: 1, attach: 1, assign: 1 });
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 20 }), { create: 2, attach: 2, assign: 0 });
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 29 }), { create: 2, attach: 2, assign: 1 });
  t.deepEqual(fewestCalls({ ...eightCores, ipsPerNode: 35 }), { create: 2, attach: 2, assign: 2 });
});

test('fewestCalls: refuses what the instance cannot hold', (t) => {
  t.throws(() => fewestCalls({ ipsPerNode: 28, ipsPerEni: 9, enisPerNode: 3 }), { instanceOf: RangeError });
});

test('leastSeconds: the scarcest rate decides', (t) => {
  const join = { nodes: 100, ipsPerNode: 10, ipsPerEni: 19, enisPerNode: 5 };
  t.is(leastSeconds(join, { product: 50, create: 100, attach: 100, assign: 100 }), 4);
  t.is(leastSeconds(join, { product: 50, create: 10, attach: 100, assign: 100 }), 10);
});
