import test from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import { answersOf, FAULTS, openAnswers } from './model-answers.ts';
import { disagreementsOf } from './node-answers.ts';

// Every command that speaks of an element of the node names one fault of it in the same words: on a node as its agent
// planned it, with random faults. With the agent's record there are up to three of them. Without one the kernel's state is all
// the evidence of what should be: one fault may take away what shows the other.

/** What a fault adds, the kernel does not have twice. */
const faults = (maxLength: number) =>
  fc.uniqueArray(FAULTS, { minLength: 1, maxLength, selector: ({ name }) => name.split(' (')[0] });
const SCENES = fc.oneof(
  fc.record({ faults: faults(3), hasAgent: fc.constant(true) }),
  fc.record({ faults: faults(1), hasAgent: fc.constant(false) }),
);

test('one answer: no two commands disagree about an element, with and without a journal', async (t) => {
  t.timeout(300_000);
  const world = await openAnswers();
  for (const hasAgent of [true, false]) t.deepEqual(disagreementsOf(answersOf(world, [], hasAgent)), [], 'no fault');
  await assertLaw(
    t,
    (inner) =>
      fc.property(SCENES, (scene) => {
        const names = scene.faults.map(({ name }) => name).join('; ');
        inner.deepEqual(disagreementsOf(answersOf(world, scene.faults, scene.hasAgent)), [], names);
      }),
    { numRuns: 150 },
  );
});
