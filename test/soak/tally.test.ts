import test from 'ava';
import { clockText, Tally } from './tally.ts';

test('Tally: counts by name and tells what begins alike, the most frequent first', (t) => {
  const tally = new Tally(() => 0);
  tally.add('refused 11');
  tally.add('refused 101', 2);
  tally.add('ADDs');
  tally.most('longest', 7.6);
  tally.most('longest', 3);
  t.deepEqual(tally.under('refused '), [
    ['101', 2],
    ['11', 1],
  ]);
  t.is(tally.of('longest'), 8);
  t.is(tally.of('never'), 0);
});

test('Tally.violation: writes the same down once, with the moment of the first', (t) => {
  let nowMs = 1_000;
  const tally = new Tally(() => nowMs);
  nowMs = 66_000;
  tally.violation('a double');
  nowMs = 70_000;
  tally.violation('a double');
  t.deepEqual(tally.violations, ['1:05 a double']);
});

test('clockText: minutes and seconds', (t) => {
  t.is(clockText(187_900), '3:07');
});
