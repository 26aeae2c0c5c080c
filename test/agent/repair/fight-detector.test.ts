import test from 'ava';
import fc from 'fast-check';
import { FightDetector } from '../../../agent/repair/fight-detector.ts';
import { assertLaw } from '../../support/law.ts';

const LIMITS = { repairCount: 3, windowMs: 1_000, pauseMs: 5_000 };

test('FightDetector: repairs up to the limit, raises one alarm, then holds', (t) => {
  const fights = new FightDetector(LIMITS);
  t.deepEqual(
    [0, 1, 2, 3, 4].map((at) => fights.evaluate('rule 512', at)),
    ['repair', 'repair', 'repair', 'alarm', 'hold'],
  );
  t.deepEqual(fights.paused(4), ['rule 512']);
  t.is(fights.nextReleaseMs(4), 5_003);
});

test('FightDetector: repairs for ever what drifts more slowly than the window', (t) => {
  const fights = new FightDetector(LIMITS);
  for (let round = 0; round < 50; round++) t.is(fights.evaluate('rule 512', round * 400), 'repair');
});

test('FightDetector: holds one object and repairs the others', (t) => {
  const fights = new FightDetector(LIMITS);
  for (let round = 0; round < 5; round++) fights.evaluate('rule 512', round);
  t.is(fights.evaluate('rule 1536', 5), 'repair');
});

test('FightDetector: grants one try after the hold, and alarms at once when it is fought again', (t) => {
  const fights = new FightDetector(LIMITS);
  for (let round = 0; round < 4; round++) fights.evaluate('rule 512', round);
  t.is(fights.evaluate('rule 512', 5_003), 'repair');
  t.is(fights.evaluate('rule 512', 5_004), 'alarm');
  t.is(fights.evaluate('rule 512', 10_003), 'hold');
  t.is(fights.evaluate('rule 512', 10_004), 'repair');
  for (const at of [20_000, 20_001, 20_002]) t.is(fights.evaluate('rule 512', at), 'repair', 'peace since then');
});

test('FightDetector: forgets what is long past', (t) => {
  const fights = new FightDetector(LIMITS);
  fights.evaluate('rule 512', 0);
  fights.removeExpired(1_000);
  for (let round = 0; round < 3; round++) t.is(fights.evaluate('rule 512', 1_000 + round), 'repair');
});

test('FightDetector: wouldHold says what judge would, and counts nothing', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 40 }), (waits) => {
      const fights = new FightDetector(LIMITS);
      let nowMs = 0;
      for (const waitMs of waits) {
        nowMs += waitMs;
        const would = fights.isPaused('rule 512', nowMs);
        t.is(fights.isPaused('rule 512', nowMs), would);
        t.is(would, fights.evaluate('rule 512', nowMs) !== 'repair');
      }
    }),
  );
});
