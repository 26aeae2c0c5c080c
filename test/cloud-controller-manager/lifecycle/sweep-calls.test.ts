import test from 'ava';
import fc from 'fast-check';
import { planBatches } from '../../../cloud-controller-manager/lifecycle/plan-batches.ts';
import { assertLaw } from '../../support/law.ts';

const ids = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);

test('planBatches: 5,000 Nodes that are not ready take 50 calls, ready ones none', (t) => {
  t.is(planBatches({ present: ids('p', 5_000), missing: [], ready: ids('r', 100) }).length, 50);
  t.is(planBatches({ present: [], missing: ids('m', 5_000), ready: ids('r', 100) }).length, 50);
  t.is(planBatches({ present: [], missing: [], ready: ids('r', 5_000) }).length, 0);
});

test('law: each request has at most a hundred ids, each once, and a witness wherever one exists', async (t) => {
  const count = fc.integer({ min: 0, max: 700 });
  const property = (inner: typeof t) =>
    fc.property(count, count, fc.integer({ min: 0, max: 5 }), (present, missing, ready) => {
      const asked = { present: ids('p', present), missing: ids('m', missing), ready: ids('r', ready) };
      const batches = planBatches(asked);
      const subjects = batches.flat().filter((id) => !id.startsWith('r'));
      inner.is(new Set(subjects).size, present + missing);
      inner.is(subjects.length, present + missing);
      inner.true(batches.every((batch) => batch.length <= 100));
      inner.true(batches.length <= Math.ceil((present + missing) / 99));
      const isWitnessed = (batch: readonly string[]): boolean => batch.some((id) => !id.startsWith('m'));
      if (ready > 0) inner.true(batches.every(isWitnessed), `${present} ${missing} ${ready}`);
    });
  await assertLaw(t, property, { numRuns: 300 });
});
