import test from 'ava';
import { benchRow, median, quartiles } from '../../bench/row.ts';

const row = { suite: 's', case: 'c', peerName: 'p' } as const;

test('benchRow: nothing against a bound of nothing is level', (t) => {
  t.is(benchRow({ ...row, ours: 0, peer: 0, unit: 'writes' }).ratio, 1);
});

test('benchRow: more operations a second is better', (t) => {
  t.is(benchRow({ ...row, ours: 300, peer: 100, unit: 'ops/s' }).ratio, 3);
});
test('benchRow: fewer milliseconds is better', (t) => {
  t.is(benchRow({ ...row, ours: 2, peer: 3, unit: 'ms' }).ratio, 1.5);
});
test('median: takes the middle, or the mean of the two', (t) => {
  t.is(median([9, 1, 5]), 5);
  t.is(median([4, 1, 2, 3]), 2.5);
  t.throws(() => median([]), { instanceOf: RangeError });
});
test('quartiles: halves the two halves; the middle of an odd number of values belongs to both', (t) => {
  t.deepEqual(quartiles([5, 1, 4, 2, 3]), [2, 3, 4]);
  t.deepEqual(quartiles([4, 1, 3, 2]), [1.5, 2.5, 3.5]);
  t.deepEqual(quartiles([7]), [7, 7, 7]);
  t.throws(() => quartiles([]), { instanceOf: RangeError });
});
