import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { type MigrationNode, ON_BRIDGE, openMigrationNode } from './support/migration-node.ts';
import { HAS_REFERENCE_PLUGINS, type ProductPod } from './support/product-bridge.ts';
import type { ScenePod } from './support/scene-node.ts';
import { armKill, changingPoints, type KillPoint, recordCalls, spread } from './support/strace.ts';

// The agent is killed as it enters a system call of taking over a Pod, one call after the other. Its successor finishes it.

const crashes = HAS_REFERENCE_PLUGINS ? test.serial : test.serial.skip;

/** As many calls are tried as fit. */
const BUDGET_MS = 150_000;
/** The agent looks for such Pods every 10 s. */
const TAKE_OVER_MS = 60_000;

/** A Pod of the product as the runtime calls our executable for it. */
function asOurs({ node }: MigrationNode, { containerId, netns }: ProductPod): ScenePod {
  const name = `pod-${containerId.slice(0, 8)}`;
  const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`;
  return { node, containerId, ifName: 'eth0', namespace: 'default', name, args, netns: netns as ScenePod['netns'] };
}

async function awaitTakenOver({ node }: MigrationNode, pod: ProductPod): Promise<void> {
  const isTaken = (): boolean =>
    node.agent
      .logs()
      .split('\n')
      .some((line) => line.includes('took over a Pod') && line.includes(pod.ip));
  await waitUntil(() => isTaken() || !node.agent.child.isRunning, { what: 'taking over', timeoutMs: TAKE_OVER_MS });
}

/** What is wrong with a Pod that should be ours now. */
async function faultsOf(scene: MigrationNode, pod: ProductPod): Promise<readonly string[]> {
  const { node, product } = scene;
  const checked = await node.call('CHECK', asOurs(scene, pod), { conf: node.conf({ prevResult: pod.result }) });
  return [
    ...(checked.exitCode === 0 ? [] : [`CHECK: ${checked.stdout}`]),
    ...(product.reservations()[pod.ip] === pod.containerId ? [] : [`${pod.ip} is not reserved`]),
    ...((await pod.netns.ping('192.168.0.65')) ? [] : ['its gateway does not answer']),
  ];
}

async function end(scene: MigrationNode, pod: ProductPod): Promise<void> {
  const answer = await scene.node.call('DEL', asOurs(scene, pod));
  if (answer.exitCode !== 0) throw new Error(answer.stdout);
  scene.runtime.removeSandbox(pod.containerId);
}

/** Takes over a new Pod and is killed at `point`; returns whether it came there. */
async function crashAt(scene: MigrationNode, point: KillPoint): Promise<boolean> {
  const { node } = scene;
  const pod = await scene.addOld('old');
  const kill = await armKill(node.agent.pid, point, scene.dir);
  await awaitTakenOver(scene, pod);
  const wasReached = (await kill.end()) || !node.agent.child.isRunning;
  if (wasReached) {
    await node.agent.child.exited;
    await node.startAgent({ flags: ON_BRIDGE });
  }
  const faults = await faultsOf(scene, pod);
  if (faults.length > 0)
    throw new Error(`killed at ${point.name} ${point.nth} (${point.target}): ${faults.join('; ')}`);
  await end(scene, pod);
  return wasReached;
}

crashes(
  'agent: killed at a system call of taking over, its successor finishes it, and no packet is lost',
  async (t) => {
    t.timeout(BUDGET_MS * 3);
    const scene = await openMigrationNode(t, 'per-pod');
    const [first, second] = [await scene.addOld('old-0'), await scene.addOld('old-1')];
    await scene.stream('two old Pods', first, second);
    await scene.stream('an old Pod and another node', first, scene.other);
    await scene.node.startAgent({ flags: ON_BRIDGE });
    const recorded = await scene.addOld('old-2');
    const calls = await recordCalls(scene.node.agent.pid, scene.dir, () => awaitTakenOver(scene, recorded));
    await end(scene, recorded);
    const points = spread(changingPoints(calls));
    t.true(points.length > 5, `${points.length} points`);
    const deadlineMs = performance.now() + BUDGET_MS;
    let tried = 0;
    let reached = 0;
    for (const point of points) {
      if (performance.now() >= deadlineMs) break;
      tried += 1;
      if (await crashAt(scene, point)) reached += 1;
    }
    t.log(`figure: killed at ${reached} of ${tried} points tried, of ${points.length}`);
    t.true(reached > 0.4 * tried, `${reached} of ${tried} points were reached`);
    t.deepEqual([...(await faultsOf(scene, first)), ...(await faultsOf(scene, second))], []);
    t.deepEqual(await scene.losses(), []);
  },
);
