import test from 'ava';
import fc from 'fast-check';
import {
  createRate,
  cutRate,
  growRate,
  type Rate,
  type RateSettings,
  rateWaitMs,
  takeFromRate,
} from '../../../cloud/pacing/rate.ts';
import { assertLaw } from '../../support/law.ts';

const SETTINGS: RateSettings = { startPerSecond: 50, ceilingPerSecond: 50, floorPerSecond: 0.5, growthPerSecond: 4 };

/** Calls as fast as the rate allows for `seconds`, against a server that takes `limit(second)` calls a second. */
function drive(settings: RateSettings, seconds: number, limit: (second: number) => number) {
  let rate: Rate = createRate(settings, 0);
  let nowMs = 0;
  const accepted: number[] = Array.from({ length: seconds }, () => 0);
  const refused: number[] = Array.from({ length: seconds }, () => 0);
  while (nowMs < seconds * 1000) {
    const waitMs = rateWaitMs(rate, nowMs);
    if (waitMs > 0) {
      nowMs += waitMs;
      continue;
    }
    const second = Math.floor(nowMs / 1000);
    rate = takeFromRate(rate, nowMs);
    const isRefused = (accepted[second] ?? 0) >= limit(second);
    if (isRefused) refused[second] = (refused[second] ?? 0) + 1;
    else accepted[second] = (accepted[second] ?? 0) + 1;
    rate = isRefused
      ? cutRate(rate, settings, { startedMs: nowMs, afterMs: 500 }, nowMs)
      : growRate(rate, settings, nowMs);
  }
  return { accepted, refused, rate };
}

test('rate: never goes beyond its ceiling in any second, whatever came before', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 0, max: 20_000 }), (perSecond, idleMs) => {
        const settings = { ...SETTINGS, startPerSecond: perSecond, ceilingPerSecond: perSecond };
        let rate = createRate(settings, 0);
        let nowMs = idleMs;
        const starts: number[] = [];
        while (nowMs < idleMs + 3_000) {
          const waitMs = rateWaitMs(rate, nowMs);
          if (waitMs === 0) {
            starts.push(nowMs);
            rate = growRate(takeFromRate(rate, nowMs), settings, nowMs);
          } else nowMs += waitMs;
        }
        for (const from of starts) {
          const inSecond = starts.filter((at) => at >= from && at < from + 1000).length;
          // One that may start at once, and a twentieth of a second saved up.
          if (inSecond > perSecond + 1 + perSecond * 0.05) return false;
        }
        return true;
      }),
    { numRuns: 60 },
  );
});

test('rate: uses at least four fifths of what the server takes, and is refused a fifth of that at most', (t) => {
  for (const limit of [5, 10, 20, 35, 49]) {
    const { accepted, refused } = drive(SETTINGS, 60, () => limit);
    // The first ten seconds are for finding out.
    const [sum, vain] = [accepted, refused].map((perSecond) => perSecond.slice(10).reduce((a, b) => a + b, 0));
    t.true((sum ?? 0) >= 0.8 * limit * 50, `limit ${limit}: ${sum} of ${limit * 50}`);
    t.true((vain ?? 0) <= 0.2 * (sum ?? 0), `limit ${limit}: ${vain} refused, ${sum} accepted`);
  }
});

test('rate: comes back within thirty seconds when the server takes more again', (t) => {
  const { accepted } = drive(SETTINGS, 60, (second) => (second < 20 ? 5 : 100));
  t.true((accepted[19] ?? 0) <= 6);
  t.true((accepted[50] ?? 0) >= 45);
});

test('rate: is cut once for refusals of calls that were under way together', (t) => {
  let rate = createRate(SETTINGS, 0);
  for (let call = 0; call < 5; call++) rate = cutRate(rate, SETTINGS, { startedMs: 10, afterMs: 500 }, 100 + call);
  const once = cutRate(createRate(SETTINGS, 0), SETTINGS, { startedMs: 10, afterMs: 500 }, 100);
  t.is(rate.perSecond, once.perSecond);
  t.true(cutRate(rate, SETTINGS, { startedMs: 200, afterMs: 500 }, 300).perSecond < rate.perSecond);
});

test('rate: stops for a pause when nearly everything is refused, and never below its floor', (t) => {
  let rate = createRate(SETTINGS, 0);
  for (let call = 1; call <= 100; call++) {
    rate = cutRate(rate, SETTINGS, { startedMs: call * 1000, afterMs: 500 }, call * 1000 + 1);
  }
  t.is(rate.perSecond, SETTINGS.floorPerSecond);
  t.is(rateWaitMs(rate, 100_001), 500);
});
