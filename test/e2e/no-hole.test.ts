import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { IS_LONG } from '../support/suite-part.ts';
import { describeLoss, startTraffic, type TrafficReport } from '../support/traffic.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';
import { type Sighting, watchNode } from './support/watch-node.ts';

// Numbered UDP packets flow between Pods and the outside, 10,000 a second in each direction, while the agent restarts, is
// killed, is replaced, changes its rule mode, repairs by the clock. No number may be missing, and what ip and nft see
// beside it must show no deletion of ours that was not asked for.

const RATE = 10_000;
/** Traffic before and after each deed. */
const LEAD_MS = 500;

type Scene = { readonly trial: Trial; readonly pods: readonly AttachedPod[] };
type Outcome = { readonly sighting: Sighting; readonly report: TrafficReport };

/** Does something while packets flow and the node is watched. */
async function underTraffic(
  t: ExecutionContext,
  scene: Scene,
  what: string,
  deed: () => Promise<void>,
): Promise<Outcome> {
  const { trial, pods } = scene;
  const [first, second] = pods;
  const last = pods.at(-1);
  if (first === undefined || second === undefined || last === undefined) throw new Error('a scene has Pods');
  const watch = await watchNode(trial.node.netns);
  const outside = { netns: trial.vpc.outside.netns, ip: trial.vpc.outside.ip };
  // The last Pod is on the other ENI: this way never leaves the node.
  const inside = await startTraffic(second, last, { rate: 500, port: 7001 });
  const traffic = await startTraffic(first, outside, { rate: RATE });
  const startMs = performance.now();
  try {
    await sleep(LEAD_MS);
    await deed();
    await sleep(LEAD_MS);
    const seconds = (performance.now() - startMs) / 1_000;
    const report = await traffic.finish();
    const sighting = await watch.end();
    const rates = [report.aToB, report.bToA].map(({ sent }) => Math.round(sent / seconds));
    t.log(`${what}: ${report.aToB.sent} numbers out at ${rates[0]}/s, ${report.bToA.sent} in at ${rates[1]}/s`);
    for (const { socketDrops } of [report.aToB, report.bToA]) {
      if (socketDrops > 0)
        t.log(`${what}: ${socketDrops} numbers arrived at a receiver that was too slow to read them`);
    }
    t.deepEqual(describeLoss(report), [], `${what}: packets were lost`);
    t.deepEqual(describeLoss(await inside.finish()), [], `${what}: packets between Pods were lost`);
    return { sighting, report };
  } finally {
    await Promise.all([traffic.close(), inside.close()]);
  }
}

/** Nothing of ours was taken away, not for a moment; no route or rule was even written again. */
function untouched(t: ExecutionContext, what: string, { deletions, changes, nft }: Sighting): void {
  t.deepEqual(deletions, [], `${what}: deleted`);
  t.deepEqual(changes, [], `${what}: written again`);
  t.deepEqual(nft, [], `${what}: nftables changed`);
}

async function openScene(ruleMode: 'compact' | 'per-pod'): Promise<Scene> {
  const trial = await openTrial({ ruleMode, ipsPerEni: 8 });
  const pods: AttachedPod[] = [];
  for (let count = 0; count < 12; count++) pods.push(await trial.addPod());
  await trial.settle('with all Pods');
  return { trial, pods };
}

const inScene = test.macro(
  async (
    t: ExecutionContext,
    ruleMode: 'compact' | 'per-pod',
    body: (t: ExecutionContext, scene: Scene) => Promise<void>,
  ) => {
    t.timeout(180_000);
    const scene = await openScene(ruleMode);
    try {
      await body(t, scene);
    } finally {
      await scene.trial.close();
    }
  },
);

/** An executable of another release, as an upgrade brings it: another file, beside its own library. */
function otherExecutable({ trial }: Scene): string {
  const dir = trial.dir.join('other-release');
  mkdirSync(dir);
  for (const name of ['tke-eni-agent', 'ffi-rs.node']) copyFileSync(join(DIST_BIN_DIR, name), join(dir, name));
  return join(dir, 'tke-eni-agent');
}

for (const ruleMode of IS_LONG ? (['compact', 'per-pod'] as const) : (['compact'] as const)) {
  test.serial(
    `agent: restart, kill, upgrade and timer lose no packet, ${ruleMode}`,
    inScene,
    ruleMode,
    async (t, scene) => {
      const { trial } = scene;
      const deeds: Readonly<Record<string, () => Promise<void>>> = {
        'nothing happens': async () => sleep(500),
        'SIGTERM and a new start': async () => {
          t.deepEqual(await trial.agent.stop(), { code: 0, signal: null });
          await trial.startAgent();
        },
        'SIGKILL and a new start': async () => {
          await trial.killAgent();
          await trial.startAgent();
        },
        'an upgrade to another file': async () => {
          const path = otherExecutable(scene);
          await trial.agent.stop();
          await trial.startAgent({ program: { path } });
        },
        'a start with a short repair timer, and a few of its rounds': async () => {
          await trial.agent.stop();
          await trial.startAgent({ flags: { 'repair-interval': '1s' } });
          await sleep(2_500);
        },
      };
      for (const [what, deed] of Object.entries(deeds).filter(([name]) => IS_LONG || SHORT.includes(name))) {
        const { sighting } = await underTraffic(t, scene, what, deed);
        untouched(t, what, sighting);
        await trial.settle(`after ${what}`);
      }
    },
  );
}

/** What `make test` tries of the deeds. */
const SHORT: readonly string[] = ['SIGKILL and a new start', 'an upgrade to another file'];

/** Objects of one layout that the other does without. */
const OWN = {
  compact: /table 3999|^Deleted (512:.*lookup 3999|1536:.*fwmark)/,
  'per-pod':
    /^Deleted (512:.* to 10\.|1536:\s+from 10\.)|^Deleted 10\.\S+ dev eni\S+ (proto 84|table 254)|^Deleted (unreachable|7) 10\.\S+ (dev lo )?proto 84 metric 2147483645/,
} as const;

/** There and back; in the suite `long` once more. */
const MODE_CHANGES = IS_LONG ? (['per-pod', 'compact', 'per-pod'] as const) : (['per-pod', 'compact'] as const);

test.serial('agent: a change of the rule mode and back loses no packet', inScene, 'compact', async (t, scene) => {
  const { trial, pods } = scene;
  for (const to of MODE_CHANGES) {
    const what = `from ${trial.ruleMode} to ${to}`;
    const from = trial.ruleMode;
    const { sighting } = await underTraffic(t, scene, what, async () => {
      await trial.agent.stop();
      trial.ruleMode = to;
      await trial.startAgent();
      await trial.settle(what);
    });
    const unasked = sighting.deletions.filter((line) => !OWN[from].test(line));
    t.deepEqual(unasked, [], `${what}: deleted, and not replaced by the other layout`);
    t.true(sighting.deletions.length >= pods.length, `${what}: the old layout went`);
    t.true(sighting.changes.length >= pods.length, `${what}: the new layout came`);
    t.true(sighting.isAddedFirst, `${what}: the new layout was complete before the old one went`);
  }
});
