import test from 'ava';
import { seedList } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { auditNode, openNodeScene, supplyOf } from '../support/node-scene.ts';

const FAULTS: readonly Fault[] = [
  { kind: 'hang' },
  { kind: 'hang', after: true },
  { kind: 'reset' },
  { kind: 'reset', after: true },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnsupportedOperation.InvalidState' },
  { kind: 'http', status: 502, after: true },
  { kind: 'task', fate: 'fail' },
  { kind: 'task', fate: 'vanish' },
  { kind: 'slow-task', ms: 40_000 },
];

/** Faults, changes of demand and deaths of leaders at random for ten minutes, then peace. */
async function storm(seed: number) {
  const scene = await openNodeScene();
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  for (const fault of FAULTS) scene.host.faults.add({ fault, actions: ['*'], probability: 0.03, untilMs: 600_000 });
  scene.host.faults.add({
    fault: { kind: 'stale', ms: 3_000 },
    actions: ['Describe*'],
    probability: 0.1,
    untilMs: 600_000,
  });
  let life = scene.lead();
  while (scene.clock.monotonicMs() < 600_000) {
    scene.want(below(27));
    if (random() < 0.2)
      scene.facts.parts = { ...scene.facts.parts, securityGroups: random() < 0.5 ? ['sg-a'] : ['sg-b', 'sg-a'] };
    if (random() < 0.2) scene.facts.parts = { ...scene.facts.parts, maxRouteENI: 1 + below(3) };
    if (random() < 0.3) {
      life.crash();
      await scene.pass(1_000 + below(20_000));
      life = scene.lead();
    }
    await scene.pass(below(30_000));
  }
  scene.facts.parts = { securityGroups: ['sg-a'] };
  scene.want(13);
  // What a description of the past hid is found by the periodic look at the whole.
  await scene.pass(300_000);
  life.memory.requestDescribe('node-a', 'the look at the whole');
  const isThere = await scene.until(() => auditNode(scene).length === 0 && supplyOf(scene) === 13, 3_600_000);
  return { scene, isThere };
}

for (const seed of seedList(IS_LONG ? 12 : 4)) {
  test(`reconcileNode: comes to rest with nothing lost after ten minutes of faults and deaths, seed ${seed}`, async (t) => {
    await tellingSeed(t, async () => {
      const { scene, isThere } = await storm(seed);
      t.deepEqual(auditNode(scene), []);
      t.is(supplyOf(scene), 13);
      t.true(isThere);
    });
  });
}
