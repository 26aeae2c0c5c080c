import test from 'ava';
import type { BackoffLimits } from '../../../agent/repair/decide-backoff.ts';
import { FightDetector } from '../../../agent/repair/fight-detector.ts';
import type { Operation } from '../../../dataplane/operation.ts';

const LIMITS: BackoffLimits = {
  peaceMs: 100,
  freeRepairs: 2,
  firstMs: 20,
  longestMs: 100,
  calmMs: 1_000,
  alarmCount: 4,
  windowMs: 10_000,
};

const RULE: Operation = { kind: 'add-rule', rule: { family: 4, priority: 512, table: 3999 } };
const OTHER: Operation = { kind: 'add-rule', rule: { family: 4, priority: 1536, table: 4007 } };

/** Fights over `RULE` until it waits from 3 ms to 23 ms. */
function fought(): FightDetector {
  const fights = new FightDetector(LIMITS);
  for (const nowMs of [0, 1, 2, 3]) fights.evaluate('rule', RULE, nowMs, nowMs);
  return fights;
}

test('FightDetector: holds one object and repairs the others', (t) => {
  const fights = fought();
  t.true(fights.isHeld('rule', 4));
  t.is(fights.evaluate('rule', RULE, 4, 4).verdict, 'hold');
  t.is(fights.evaluate('other', OTHER, 4, 4).verdict, 'repair');
  t.false(fights.isHeld('rule', 23));
});

test('FightDetector: says when a pass is due: at the end of the wait, then when the object counts as settled', (t) => {
  const fights = fought();
  t.is(fights.nextChangeMs(4), 23);
  t.is(fights.evaluate('rule', RULE, 23, 23).verdict, 'repair');
  t.is(fights.nextChangeMs(23), 1_023);
  t.is(fights.nextChangeMs(1_023), undefined);
});

test('FightDetector: nobody may rely on what was held back, until it has stood for a while', (t) => {
  const fights = fought();
  fights.evaluate('rule', RULE, 23, 23);
  t.deepEqual(fights.notCalm(1_022), [RULE]);
  t.deepEqual(fights.notCalm(1_023), []);
});

test('FightDetector: names a fight for a window after the last change, and not what was changed once', (t) => {
  const fights = fought();
  fights.evaluate('other', OTHER, 4, 4);
  t.deepEqual(fights.contested(10_002), [RULE]);
  t.deepEqual(fights.contested(10_003), []);
});

test('FightDetector: forgets what is long over, and never had more than its bound', (t) => {
  const fights = fought();
  fights.removeExpired(20_000);
  t.is(fights.nextChangeMs(4), undefined);
  for (let number = 0; number < 5_000; number++) fights.evaluate(`rule ${number}`, RULE, 0, 0);
  for (const nowMs of [1, 2, 3]) fights.evaluate('rule 0', RULE, nowMs, nowMs);
  t.false(fights.isHeld('rule 0', 4), 'it had given way');
});

test('FightDetector: remembers nothing of what nobody fights over', (t) => {
  const fights = new FightDetector(LIMITS);
  for (let nowMs = 0; nowMs < 50; nowMs++) t.is(fights.evaluate('rule', RULE, undefined, nowMs).verdict, 'repair');
  t.is(fights.nextChangeMs(50), undefined);
});

test('FightDetector: a repair stands from when it was done', (t) => {
  const fights = fought();
  fights.evaluate('rule', RULE, 23, 23);
  fights.noteDone('rule', 200);
  t.is(fights.evaluate('rule', RULE, 210, 220).verdict, 'hold');
});
