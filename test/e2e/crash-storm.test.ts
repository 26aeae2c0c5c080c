import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { IS_LONG, longTest } from '../support/suite-part.ts';
import { withSeed } from '../support/with-seed.ts';
import type { ScenePod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// ADDs and DELs of many Pods at once, the agent killed at a random moment amid them, and once more amid its recovery.
// Whatever came of it: the invariants hold, every ADD and DEL can be repeated, and in the end nothing is left.
// SEED repeats a run's choices (the machine's own timing it cannot repeat).

const ROUNDS = IS_LONG ? 6 : 2;
const ADDS_A_ROUND = 6;
/** About as long as that many calls take together; and as an agent takes to recover. */
const LONGEST_FUSE_MS = 400;

type Dice = (below: number) => number;

async function crashAmid(trial: Trial, calls: readonly Promise<unknown>[], dice: Dice) {
  await sleep(dice(LONGEST_FUSE_MS));
  await trial.killAgent();
  if (dice(2) === 0) {
    const started = trial.startAgent({ until: 'started' });
    await sleep(dice(LONGEST_FUSE_MS));
    await started;
    await trial.killAgent();
  }
  await trial.startAgent();
  await Promise.all(calls);
}

const storm = test.macro(async (t: ExecutionContext, ruleMode: 'compact' | 'per-pod', isDual: boolean) => {
  t.timeout(240_000);
  await withSeed(t, async (seed) => {
    const random = seededRandom(seed);
    await crashAgain(t, { ruleMode, isDual }, (below) => Math.floor(random() * below));
  });
});

type Layout = { readonly ruleMode: 'compact' | 'per-pod'; readonly isDual: boolean };

async function crashAgain(t: ExecutionContext, { ruleMode, isDual }: Layout, dice: Dice): Promise<void> {
  const trial = await openTrial({ ruleMode, isDual, ipsPerEni: 20, flags: { 'ip-cooldown': '1s' } });
  const living = new Set<ScenePod>();
  try {
    for (let round = 1; round <= ROUNDS; round++) {
      const where = `in round ${round}`;
      const fresh: ScenePod[] = [];
      for (let count = 0; count < ADDS_A_ROUND; count++) fresh.push(await trial.newPod());
      const leaving = [...living].filter(() => dice(2) === 0);
      const adds = fresh.map((pod) => trial.tryAdd(pod));
      const deletes = leaving.map((pod) => trial.tryDelete(pod));
      await crashAmid(trial, [...adds, ...deletes], dice);
      for (const answer of await Promise.all(adds)) {
        t.true(answer.exitCode === 0 || answer.error?.code === 11, `${where}: ADD: ${answer.stdout}`);
      }
      for (const answer of await Promise.all(deletes)) t.is(answer.exitCode, 0, `${where}: DEL: ${answer.stdout}`);
      await trial.settle(`${where}, as the crash left it`);

      const again = await Promise.all(fresh.map((pod) => trial.add(pod)));
      await Promise.all(leaving.map((pod) => trial.delete(pod)));
      for (const pod of leaving) living.delete(pod);
      for (const pod of fresh) living.add(pod);
      await trial.settle(`${where}, with every call repeated`);
      const answers = await Promise.all(again.map((pod) => pod.netns.ping(trial.vpc.outside.ip)));
      t.deepEqual(
        again.filter((_, index) => answers[index] !== true).map(({ ip }) => ip),
        [],
        `${where}: no answer to a ping`,
      );
    }
    await Promise.all([...living].map((pod) => trial.delete(pod)));
    await trial.settle('in the end');
    t.deepEqual(await trial.node.hostVeths(), [], 'a link is left');
  } finally {
    await trial.close();
  }
}

test('agent: killed amid many ADDs and DELs, and amid its recovery, compact, dual-stack', storm, 'compact', true);
longTest('agent: killed amid many ADDs and DELs, and amid its recovery, per-pod', storm, 'per-pod', false);
