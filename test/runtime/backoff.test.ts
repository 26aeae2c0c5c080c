import test from 'ava';
import fc from 'fast-check';
import { backoffMs } from '../../runtime/backoff.ts';
import { assertLaw } from '../support/law.ts';

const settings = { firstMs: 100, maxMs: 5000, factor: 2, jitter: 0.5 };

test('backoffMs: doubles up to the cap', (t) => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffMs(settings, attempt, 0));
  t.deepEqual(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
});

test('backoffMs: stays between the jittered share and the cap for any attempt and any luck', async (t) => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  await assertLaw(t, () =>
    fc.property(fc.integer({ min: 1, max: 1000 }), random, (attempt, luck) => {
      const wait = backoffMs(settings, attempt, luck);
      return wait >= 50 && wait <= 5000;
    }),
  );
});
