import test from 'ava';
import { benchRow, median } from '../../bench/row.ts';

const row = { suite: 's', case: 'c', peerName: 'p' } as const;

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
