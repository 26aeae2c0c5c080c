import test from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import { answersOf, FAULTS, openAnswers } from './model-answers.ts';
import { disagreementsOf } from './node-answers.ts';

// Every command that speaks of an element of the node names one fault of it in the same words: on a node as its agent
// planned it, with up to three random faults, with the agent's record and without one.

/** What a fault adds, the kernel does not have twice. */
const DIFFERENT_FAULTS = fc.uniqueArray(FAULTS, {
  minLength: 1,
  maxLength: 3,
  selector: ({ name }) => name.split(' (')[0],
});

test('one answer: no two commands disagree about an element, with and without a journal', async (t) => {
  t.timeout(300_000);
  const world = await openAnswers();
  for (const hasAgent of [true, false]) t.deepEqual(disagreementsOf(answersOf(world, [], hasAgent)), [], 'no fault');
  await assertLaw(
    t,
    (inner) =>
      fc.property(DIFFERENT_FAULTS, fc.boolean(), (faults, hasAgent) => {
        inner.deepEqual(
          disagreementsOf(answersOf(world, faults, hasAgent)),
          [],
          faults.map(({ name }) => name).join('; '),
        );
      }),
    { numRuns: 150 },
  );
});
