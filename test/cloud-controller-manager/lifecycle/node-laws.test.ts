/** Nodes and instances come, go and stop, cloud and API server fail and answer wrongly, leaders die: no Node is deleted that the cloud has. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { NodeWorld } from '../node-world.ts';
import { API_DEED, CLOUD_DEED, type Deed, NodeLife } from './node-life.ts';

const MINUTE_MS = 60_000;

async function live(
  t: ExecutionContext,
  deeds: readonly (readonly [Deed, number])[],
  withApiFaults: boolean,
): Promise<void> {
  const world = await NodeWorld.start('--node-release-percent=100');
  await world.joinInstance('always', 'ins-always01');
  await world.advance(6 * MINUTE_MS);
  const life = new NodeLife(world);
  await life.joinForeign();
  life.failSome();
  if (withApiFaults) life.failSomeOfApi();
  for (const [deed, waitMs] of deeds) {
    await life.do(deed);
    await world.advance(waitMs);
    t.deepEqual(life.wronglyDeleted(), [], JSON.stringify(deed));
  }
  await life.heal();
  await world.advance(90 * MINUTE_MS);
  t.deepEqual(life.wronglyDeleted(), []);
  t.deepEqual(life.waiting(), []);
  t.false(life.isForeignTouched(), 'a Node of others was changed');
  const held = new Set(world.scene.events('NodeDeletionHeld'));
  // Of an instance that went before the cloud ever described it, nothing shows that it was one of this VPC.
  const unseen = [...held].some((text) => text.includes('never described'));
  if (!unseen) t.deepEqual(life.left(), []);
  await world.stop();
}

function livesOf(deed: fc.Arbitrary<Deed>) {
  const step = fc.tuple(deed, fc.constantFrom(500, 6_000, 25_000, 2 * MINUTE_MS));
  return fc.array(step, { minLength: 4, maxLength: 14 });
}

test('law: no Node is deleted that the cloud has, whatever it answers; in the end those it lacks are deleted', async (t) => {
  const law = (inner: ExecutionContext) => fc.asyncProperty(livesOf(CLOUD_DEED), (deeds) => live(inner, deeds, false));
  await assertLaw(t, law, { numRuns: IS_LONG ? 12 : 5, endOnFailure: true });
});

test('law: nor while the API server lists nothing or the past, forgets, ends watches, refuses and loses answers', async (t) => {
  const law = (inner: ExecutionContext) => fc.asyncProperty(livesOf(API_DEED), (deeds) => live(inner, deeds, true));
  await assertLaw(t, law, { numRuns: IS_LONG ? 12 : 5, endOnFailure: true });
});
