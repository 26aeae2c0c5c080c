import test from 'ava';
import type { RunningIpamd } from '../../../../ipamd/ipamd.ts';
import { seedList } from '../../../../sim/support/seed.ts';
import { seededRandom } from '../../../../sim/support/seeded-random.ts';
import { IS_LONG } from '../../../support/suite-part.ts';
import { tellingSeed } from '../../../support/with-seed.ts';
import { CiliumScene } from './cilium-scene.ts';

const NODES = ['n1', 'n2', 'n3'];
const ALONE = ['--leader-elect=false', '--shutdown-grace=0s'];
const STORM_MS = 1_500_000;

/**
 * Pods come and go, ipamd and agents of Cilium are killed, writes are refused or lose their answer, watches break. The
 * scene looks at each step for an address in two pools, and for one in use that is not on its node.
 */
async function storm(seed: number): Promise<CiliumScene> {
  const scene = await CiliumScene.open();
  scene.stepMs = 1_000;
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const { clock, server } = scene.shell;
  let lives = 0;
  let ipamd: RunningIpamd | undefined;
  const start = async (): Promise<void> => {
    lives += 1;
    ipamd = await scene.shell.start({ name: `life-${String(lives).padStart(4, '0')}`, flags: ALONE });
  };
  const kill = async (): Promise<void> => {
    const old = ipamd;
    const { heal } = server.partition(`life-${String(lives).padStart(4, '0')}`);
    await start();
    old?.close().then(heal, heal);
  };
  await start();
  for (const node of NODES) await scene.join(node);
  await scene.until(() => NODES.every((node) => scene.agents.get(node)?.isReady), 'all are ready');
  const resources = ['ciliumnodes', 'nodeeniconfigs'];
  for (const kind of ['drop-before', 'drop-after'] as const)
    server.api.faults.add({
      userAgent: 'life-*',
      verbs: ['patch', 'update'],
      resources,
      chance: 0.05,
      action: { kind },
    });
  const pods = new Map<string, string>();
  const downUntil = new Map<string, number>();
  let serial = 0;
  const untilMs = clock.monotonicMs() + STORM_MS;
  while (clock.monotonicMs() < untilMs) {
    const node = NODES[below(NODES.length)] ?? '';
    const isUp = !downUntil.has(node) && scene.agents.get(node)?.isReady === true;
    for (let pod = below(8); isUp && pod > 0; pod--) {
      const name = `p${serial++}`;
      await scene.startPod(name, node);
      pods.set(name, node);
    }
    // An agent that restores its Pods must not lose one of them meanwhile: it would restore what is over.
    if ((isUp || downUntil.has(node)) && random() < 0.5)
      for (const [name, on] of pods)
        if (on === node && random() < 0.6) {
          await scene.endPod(name, on);
          pods.delete(name);
        }
    if (random() < 0.15) await kill();
    if (random() < 0.1) server.cutWatches();
    if (random() < 0.1 && isUp) {
      scene.killAgent(node);
      downUntil.set(node, clock.monotonicMs() + below(120_000));
    }
    await scene.pass(below(40_000));
    for (const [name, ms] of downUntil)
      if (clock.monotonicMs() >= ms) {
        downUntil.delete(name);
        scene.startAgent(name, below(3) === 0 ? below(20_000) : 0);
      }
  }
  server.api.faults.clear();
  for (const name of downUntil.keys()) scene.startAgent(name);
  // A leader marks only on nodes whose agent it has seen to write.
  await scene.until(() => NODES.every((node) => scene.agents.get(node)?.isReady), 'all are ready again');
  for (const [name, on] of pods) await scene.endPod(name, on);
  for (const node of NODES) await scene.startPods(node, 1);
  return scene;
}

for (const seed of seedList(IS_LONG ? 4 : 1)) {
  test(`ipamd and Cilium agree in the end, and no address in use was lost, seed ${seed}`, (t) =>
    tellingSeed(t, async () => {
      const scene = await storm(seed);
      await scene.until(() => NODES.every((node) => scene.isSettled(node)), 'settled');
      await scene.until(() => NODES.every((node) => scene.assigned(node).length === 8), 'only what is needed is left');
      for (const node of NODES) t.deepEqual(scene.poolIps(node), scene.assigned(node));
    }));
}
