import test, { type ExecutionContext } from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { type MigrationNode, ON_BRIDGE, openMigrationNode } from './support/migration-node.ts';
import { HAS_REFERENCE_PLUGINS, type ProductPod } from './support/product-bridge.ts';
import { RULE_MODES } from './support/scene.ts';
import type { AttachedPod, ScenePod } from './support/scene-node.ts';

// A node goes from the product's GlobalRoute network to a hybrid one and back, with Pods running, and its agent is killed
// between any two steps. Numbered packets and connections run from each step to the end; none may be lost.

const migrates = HAS_REFERENCE_PLUGINS ? test.serial : test.serial.skip;

/** What the steps made so far. */
type Progress = {
  readonly old: ProductPod[];
  readonly eni: AttachedPod[];
  readonly young: AttachedPod[];
  /** Flags of the agent that should run now; undefined: none. */
  flags: Record<string, string> | undefined;
};

type Step = { readonly what: string; readonly run: (scene: MigrationNode, made: Progress) => Promise<void> };

/** A Pod of the product as the runtime calls our executable for it. */
function asOurs({ node }: MigrationNode, { containerId, netns }: ProductPod): ScenePod {
  const name = `pod-${containerId.slice(0, 8)}`;
  const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`;
  return { node, containerId, ifName: 'eth0', namespace: 'default', name, args, netns: netns as ScenePod['netns'] };
}

async function restart({ node }: MigrationNode, made: Progress, flags: Record<string, string>): Promise<void> {
  if (made.flags !== undefined) await node.agent.stop();
  await node.startAgent({ flags });
  made.flags = flags;
}

const first = <T>([one]: readonly T[]): T => {
  if (one === undefined) throw new Error('an earlier step makes one');
  return one;
};

const TO_HYBRID: readonly Step[] = [
  {
    what: 'the agent takes over the Pods of the bridge',
    run: (scene, made) => restart(scene, made, { ...ON_BRIDGE }),
  },
  {
    what: 'a GlobalRoute Pod comes by the agent',
    run: async (scene, made) => {
      made.young.push(await scene.addYoung('young-0'));
      await scene.stream('a young Pod and an old one', first(made.young), first(made.old));
    },
  },
  {
    what: 'an ENI comes',
    run: async ({ vpc, node }) => {
      const { eniId } = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 's0' });
      await vpc.assignIps(eniId, 4);
      node.writeSupply();
      await waitUntil(() => node.agent.logs().includes('ENI is ready'), { what: 'the ENI to be ready' });
    },
  },
  {
    what: 'a Pod of the ENI comes',
    run: async (scene, made) => {
      await restart(scene, made, {});
      made.eni.push(await scene.addYoung('eni-0'));
      const pod = first(made.eni);
      await scene.stream('a Pod of the ENI and an old one', pod, first(made.old));
      await scene.stream('a Pod of the ENI and a young one', pod, first(made.young));
      await scene.stream('a Pod of the ENI and another node', pod, scene.other);
    },
  },
  {
    what: 'the bridge is the default again, and an old Pod ends',
    run: async (scene, made) => {
      await restart(scene, made, { ...ON_BRIDGE });
      const ended = made.old.pop();
      if (ended === undefined) throw new Error('there are old Pods');
      const answer = await scene.node.call('DEL', asOurs(scene, ended));
      if (answer.exitCode !== 0) throw new Error(answer.stdout);
      scene.runtime.removeSandbox(ended.containerId);
    },
  },
];

const BACK: readonly Step[] = [
  {
    what: 'the product serves beside the agent, and the agent takes its Pod over',
    run: async (scene, made) => {
      made.old.push(await scene.addOld('late-0'));
      await waitUntil(() => scene.node.agent.logs().includes('took over a Pod'), {
        what: 'taking over',
        timeoutMs: 60_000,
      });
    },
  },
  {
    what: 'the agent stops; the product gives no address of a Pod that runs',
    run: async (scene, made) => {
      await scene.node.agent.stop();
      made.flags = undefined;
      const taken = new Set([...made.old, ...made.young].map(({ ip }) => ip));
      for (const name of ['back-0', 'back-1']) {
        const pod = await scene.addOld(name);
        if (taken.has(pod.ip)) throw new Error(`${pod.ip} was given twice`);
        made.old.push(pod);
        await scene.stream(`the product's Pod ${name} and an older one`, pod, first(made.old));
      }
    },
  },
  {
    what: 'the product ends a Pod of the agent that has no stream',
    run: async (scene, made) => {
      const late = made.young.pop();
      if (late === undefined) throw new Error('there are young Pods');
      await scene.product.delete(late);
      scene.runtime.removeSandbox(late.containerId);
      if (scene.product.reservations()[late.ip] !== undefined) throw new Error(`${late.ip} stays reserved`);
    },
  },
  {
    what: 'the agent comes again and takes over all',
    run: (scene, made) => restart(scene, made, { ...ON_BRIDGE }),
  },
];

/** Does the steps; after each the agent is killed and started again, if `kills`. */
async function walk(
  t: ExecutionContext,
  scene: MigrationNode,
  made: Progress,
  steps: readonly Step[],
  kills: boolean,
): Promise<void> {
  for (const { what, run } of steps) {
    await run(scene, made);
    if (kills && made.flags !== undefined) {
      await scene.node.killAgent();
      await scene.node.startAgent({ flags: made.flags });
    }
    const missing = [...made.old, ...made.young].filter(
      ({ ip, containerId }) => scene.product.reservations()[ip] !== containerId,
    );
    t.deepEqual(missing, [], `${what}: each GlobalRoute Pod is reserved`);
  }
}

for (const ruleMode of RULE_MODES) {
  for (const kills of [false, true]) {
    migrates(
      `agent: from the product's bridge to hybrid and back no packet is lost, ${ruleMode}${kills ? ', killed after each step' : ''}`,
      async (t) => {
        t.timeout(300_000);
        const scene = await openMigrationNode(t, ruleMode);
        const made: Progress = { old: [], eni: [], young: [], flags: undefined };
        for (const name of ['old-0', 'old-1', 'old-2']) made.old.push(await scene.addOld(name));
        await scene.stream('two old Pods', first(made.old), first(made.old.slice(1)));
        await scene.stream('an old Pod and another node', first(made.old), scene.other);
        await walk(t, scene, made, TO_HYBRID, kills);
        // A young Pod without a stream, for the product to end.
        made.young.push(await scene.addYoung('young-1'));
        await walk(t, scene, made, BACK, kills);
        t.deepEqual(await scene.losses(), []);
        t.deepEqual(await scene.vpc.droppedPackets(), []);
      },
    );
  }
}

for (const ruleMode of RULE_MODES) {
  test.serial(`agent: from VPC-CNI to GlobalRoute no packet is lost, ${ruleMode}`, async (t) => {
    t.timeout(180_000);
    const scene = await openMigrationNode(t, ruleMode);
    const { node, vpc } = scene;
    const made: Progress = { old: [], eni: [], young: [], flags: undefined };
    const { eniId } = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 's0' });
    await vpc.assignIps(eniId, 4);
    node.writeSupply();
    await restart(scene, made, { 'pod-cidr': '' });
    const [eni, other] = [await scene.addYoung('eni-0'), await scene.addYoung('eni-1')];
    await scene.stream('a Pod of the ENI and another node', eni, scene.other);
    await restart(scene, made, { ...ON_BRIDGE });
    const bridged = await scene.addYoung('bridge-0');
    t.is(bridged.ip, '192.168.0.66');
    await scene.stream('a Pod of the ENI and a GlobalRoute Pod', eni, bridged);
    await scene.stream('a GlobalRoute Pod and another node', bridged, scene.other);
    await node.delete(other);
    await restart(scene, made, { ...ON_BRIDGE });
    t.deepEqual(await scene.losses(), []);

    // The last Pod of the ENI goes, and then the ENI.
    await scene.stream('a GlobalRoute Pod and another node, at the end', bridged, scene.other);
    await node.delete(eni);
    await vpc.detachEni(eniId);
    node.writeSupply();
    await restart(scene, made, { ...ON_BRIDGE });
    t.true(await (await scene.addYoung('bridge-1')).netns.ping(bridged.ip));
    t.deepEqual(await scene.losses(), []);
  });
}
