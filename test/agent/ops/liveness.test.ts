import test from 'ava';
import { livenessOf } from '../../../agent/ops/liveness.ts';

test('livenessOf: says nothing between passes and while one takes its time', (t) => {
  t.is(livenessOf(undefined, 1_000_000), undefined);
  t.is(livenessOf(1_000_000, 1_119_999), undefined);
});

test('livenessOf: says since when a pass hangs', (t) => {
  t.is(livenessOf(1_000_000, 1_125_000), 'a repair pass has hung for 125 s');
});
