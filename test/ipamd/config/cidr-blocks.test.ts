import test from 'ava';
import fc from 'fast-check';
import { areOverlapping, findBlockFaults, maskSizeFor, numberBlocks } from '../../../ipamd/config/cidr-blocks.ts';
import { assertLaw } from '../../support/law.ts';

/** The product's example: a /20 of which the Services have the last /22, 64 addresses for each node. */
const PRODUCT = { clusterCidrs: ['192.168.0.0/20'], serviceCidr: '192.168.12.0/22', maskSize: 26 };

test('numberBlocks: the product’s example has 48 blocks for nodes, and cbr0 192.168.0.65 is of the second', (t) => {
  const blocks = numberBlocks(PRODUCT);
  t.is(blocks.count, 64);
  t.is(blocks.count - blocks.ofServices.size, 48);
  t.deepEqual([0, 1, 47, 48, 63].map(blocks.cidrOf), [
    '192.168.0.0/26',
    '192.168.0.64/26',
    '192.168.11.192/26',
    '192.168.12.0/26',
    '192.168.15.192/26',
  ]);
  t.deepEqual(
    [...blocks.ofServices],
    Array.from({ length: 16 }, (_, index) => 48 + index),
  );
  t.deepEqual(blocks.overlapping('192.168.0.65/32'), [1]);
});

test('numberBlocks: the blocks of several networks follow one another', (t) => {
  const blocks = numberBlocks({ clusterCidrs: ['10.4.0.0/23', '10.8.0.0/24'], serviceCidr: '', maskSize: 24 });
  t.deepEqual([0, 1, 2].map(blocks.cidrOf), ['10.4.0.0/24', '10.4.1.0/24', '10.8.0.0/24']);
  t.throws(() => blocks.cidrOf(3), { instanceOf: RangeError });
  t.throws(() => blocks.cidrOf(-1), { instanceOf: RangeError });
  t.deepEqual(blocks.overlapping('10.0.0.0/8'), [0, 1, 2]);
  t.true(blocks.contains('10.8.0.128/25'));
  t.false(blocks.contains('10.8.0.0/23'));
});

const overlaps = test.macro((t, cidr: string, want: readonly number[]) => {
  t.deepEqual(numberBlocks(PRODUCT).overlapping(cidr), want);
});
test('overlapping: a smaller network', overlaps, '192.168.1.0/28', [4]);
test('overlapping: a larger one', overlaps, '192.168.1.0/24', [4, 5, 6, 7]);
test('overlapping: one that ends within', overlaps, '192.168.15.0/24', [60, 61, 62, 63]);
test('overlapping: one outside', overlaps, '192.168.16.0/20', []);
test('overlapping: one below', overlaps, '10.0.0.0/8', []);
test('overlapping: IPv6', overlaps, 'fd00::/64', []);
test('overlapping: no network', overlaps, 'all of it', []);
test('overlapping: host bits', overlaps, '192.168.0.65/26', []);

test('maskSizeFor: rounds up to a power of two', (t) => {
  t.deepEqual([8, 16, 64, 65, 100, 128, 129, 256, 257].map(maskSizeFor), [29, 28, 26, 25, 25, 25, 24, 24, 23]);
});

test('areOverlapping: one within the other, either way, and neighbours', (t) => {
  t.true(areOverlapping('10.0.0.0/8', '10.1.0.0/16'));
  t.true(areOverlapping('10.1.0.0/16', '10.0.0.0/8'));
  t.false(areOverlapping('10.0.0.0/24', '10.0.1.0/24'));
  t.false(areOverlapping('fd00::/8', 'fd00::/8'));
});

test('numberBlocks: each block is found by its network alone', async (t) => {
  const settings = fc.record({ length: fc.integer({ min: 8, max: 24 }), bits: fc.integer({ min: 0, max: 8 }) });
  await assertLaw(t, (inner) =>
    fc.property(settings, fc.nat(), ({ length, bits }, at) => {
      const blocks = numberBlocks({ clusterCidrs: [`10.0.0.0/${length}`], serviceCidr: '', maskSize: length + bits });
      inner.is(blocks.count, 2 ** bits);
      const block = at % blocks.count;
      inner.deepEqual(blocks.overlapping(blocks.cidrOf(block)), [block]);
    }),
  );
});

const refused = test.macro((t, change: Partial<typeof PRODUCT>, want: readonly RegExp[]) => {
  const faults = findBlockFaults({ ...PRODUCT, ...change });
  const texts = faults.map(({ flag, expected, value }) => `${flag}: ${expected}, got ${String(value)}`);
  t.is(texts.length, want.length, texts.join('; '));
  for (const [at, pattern] of want.entries()) t.regex(texts[at] ?? '', pattern);
});
test('findBlockFaults: accepts the product’s example', refused, {}, []);
test(
  'findBlockFaults: refuses networks that overlap',
  refused,
  { clusterCidrs: ['192.168.0.0/20', '192.168.8.0/21'] },
  [/^--cluster-cidr: networks that do not overlap, as 192.168.0.0\/20 does, got 192.168.8.0\/21/],
);
test('findBlockFaults: refuses a block larger than a network', refused, { maskSize: 19 }, [/at least 20, as a block/]);
test(
  'findBlockFaults: refuses more blocks than are numbered',
  refused,
  { clusterCidrs: ['10.0.0.0/8'], maskSize: 26 },
  [/at most 24, as 10.0.0.0\/8 would have more than 65536/],
);
test('findBlockFaults: refuses Services that leave nothing', refused, { serviceCidr: '192.168.0.0/16' }, [
  /^--service-cluster-ip-range: a network that leaves blocks/,
]);
test('findBlockFaults: accepts Services outside', refused, { serviceCidr: '10.96.0.0/16' }, []);
