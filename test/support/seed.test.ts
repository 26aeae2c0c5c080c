import test from 'ava';
import { DEFAULT_SEED, readRuns, readSeed, seedList, seedOf } from '../../sim/support/seed.ts';

test('readSeed: takes a number, draws one for random, and is fixed without', (t) => {
  t.is(readSeed('7'), 7);
  t.is(readSeed(undefined), DEFAULT_SEED);
  t.is(readSeed(''), DEFAULT_SEED);
  const drawn = new Set(Array.from({ length: 20 }, () => readSeed('random')));
  t.true(drawn.size > 1);
  t.deepEqual(
    [...drawn].map((seed) => readSeed(String(seed))),
    [...drawn],
  );
});

for (const text of ['0', '-1', '1.5', 'seven', '2147483648']) {
  test(`readSeed: refuses ${text}`, (t) => {
    t.throws(() => readSeed(text), { instanceOf: RangeError, message: new RegExp(`not "${text}"`) });
  });
}

test('readRuns: is 1 unless a whole number says more', (t) => {
  t.is(readRuns(undefined), 1);
  t.is(readRuns('10'), 10);
  for (const text of ['0', '0.5', 'many']) t.throws(() => readRuns(text), { instanceOf: RangeError });
});

test('seedOf: is the same for the same label and seed, and another for another', (t) => {
  t.is(seedOf('a', 1), seedOf('a', 1));
  t.is(new Set([seedOf('a', 1), seedOf('b', 1), seedOf('a', 2), seedOf('a 1', 1)]).size, 4);
});

test('seedList: counts under the default seed, draws under another, none twice, more for more runs', (t) => {
  t.deepEqual(seedList(3, DEFAULT_SEED, 1), [1, 2, 3]);
  const drawn = seedList(12, 99, 10);
  t.is(new Set(drawn).size, 120);
  t.deepEqual(seedList(12, 99, 1), drawn.slice(0, 12));
  t.notDeepEqual(seedList(12, 98, 1), drawn.slice(0, 12));
});
