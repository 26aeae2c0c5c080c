import { BACKEND_READY_GATE, POD_ANNOTATION } from '../../../crd/names.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { NODES } from '../../../kube/resource-types.ts';
import type { Snapshot } from '../../../sim/kube-api/store.ts';
import type { Life } from '../life.ts';
import type { Machine } from '../machine.ts';
import { ServiceStage } from '../service-stage.ts';
import type { Stage } from '../stage.ts';
import { type TakeBack, writeWrong } from '../standins/wrong-writers.ts';
import { EIP_KEPT, EIP_MADE } from '../stories/eips.ts';
import { CLOSED_NODE } from '../stories/services.ts';
import type { Story } from '../story.ts';
import { CLOUD, Stopped } from '../world.ts';
import type { Action, Deed, Script, Whom } from './deed.ts';
import { BOUGHT, performService } from './service-deeds.ts';

/** The story that a script tells. What is not there any more, as a Pod that never came, is left alone. */
export function scripted(title: string, { seed, temper, actions }: Script): Story {
  const { isWhole, flags, agentFlags, ccmFlags, cooldownMs, nodes, cores = 2 } = temper;
  return {
    ...{ title, seed },
    world: { cooldownMs, flags, cloud: ROOMY, ...(isWhole && { agentFlags }), ...(ccmFlags && { ccmFlags }) },
    tell: async (stage) => {
      const scene: Scene = {
        ...{ stage, cores, services: new ServiceStage(stage), machines: [], backup: undefined },
        takeBacks: new Map(),
      };
      for (let at = 0; at < nodes; at++) scene.machines.push(await stage.node({ cores }));
      if (actions.some(({ kind }) => kind === 'ingress')) await scene.services.buy(BOUGHT);
      stage.begin();
      const beginMs = stage.world.time.nowMs;
      for (const action of actions) await act(scene, action, beginMs);
      await stage.world.pass(LINGER_MS);
      for (const life of stage.world.lives) life.undisturb();
    },
  };
}

/** What a script has to do with. */
type Scene = {
  readonly stage: Stage;
  readonly services: ServiceStage;
  readonly cores: number;
  readonly machines: Machine[];
  backup: Snapshot | undefined;
  /** What takes back what is wrong, by its name. */
  readonly takeBacks: Map<string, TakeBack>;
};

/** A Pod whose EIP is kept for longer than any script takes: then nothing ends at rest. */
const LASTING = { annotations: { ...EIP_KEPT.annotations, [POD_ANNOTATION.claimExpiredDuration]: '24h' } };
/** A cloud that makes as many EIPs a day as a script asks for. */
const ROOMY = { ...CLOUD, eipsPerDay: 1_000 };

/** What was sent before objects were lost has arrived by then. */
const LATE_MS = 120_000;
/** So long faults last on after the last action. */
const LINGER_MS = 5_000;

/** An API server that is restored is away for longer than a quarter of a lease of 30 s: the election counts on that, and who elects. */
const RESTORE_MS = 8_000;

async function act(scene: Scene, action: Action, beginMs: number): Promise<void> {
  const { world } = scene.stage;
  await world.pass(beginMs + action.atMs - world.time.nowMs);
  const [violation] = scene.stage.violations;
  if (violation !== undefined) throw new Stopped(violation.text);
  const { atMs: _atMs, ...deed } = action;
  world.note('script', JSON.stringify(deed));
  await perform(scene, deed).catch((error: unknown) => {
    if (!(error instanceof KubeError)) throw error;
    world.note('script', `${error.message}`);
  });
}

async function perform(scene: Scene, deed: Deed): Promise<void> {
  const { stage, machines } = scene;
  const { world } = stage;
  const later = (ms: number, end: () => void): void => void world.time.sleep(ms).then(end);
  switch (deed.kind) {
    case 'pod': {
      const machine = machines[deed.node];
      if (machine?.isOff === false) await stage.create(deed.name, machine, podOptions(deed));
      return;
    }
    case 'end':
      await stage.delete(deed.name);
      return;
    case 'join':
      machines.push(await stage.join({ cores: scene.cores }));
      return;
    case 'leave': {
      const machine = machines[deed.node];
      // That all Nodes are gone is believed by nobody: nothing would be given back.
      const others = machines.filter((one) => one !== machine && !one.isOff);
      if (machine?.isOff === false && others.length > 0) await stage.leave(machine);
      return;
    }
    case 'cloud':
      stage.cloudFault({ fault: deed.fault, actions: [deed.calls], times: deed.times });
      return;
    case 'api':
      stage.apiFault({ userAgent: deed.client, verbs: deed.verbs, action: deed.action, times: deed.times });
      return;
    case 'cut':
      world.api.cutWatches(deed.client);
      return;
    case 'partition':
      later(deed.ms, stage.partition(deed.client));
      return;
    case 'away':
      later(deed.ms, stage.serverAway());
      return;
    case 'detach': {
      const machine = machines[deed.node];
      const [eni] = machine === undefined ? [] : stage.enis(machine).filter(({ state }) => state === 'AVAILABLE');
      if (eni !== undefined) await stage.detachInCloud(eni);
      return;
    }
    case 'backup':
      scene.backup = stage.backup();
      return;
    case 'restore':
      if (scene.backup === undefined) return;
      stage.restore(scene.backup);
      for (const client of ['ipamd-*', 'ccm-*', 'extender-*']) later(RESTORE_MS, stage.partition(client));
      // cloud-controller-manager deletes Nodes of instances that are gone, and people restart kubelets whose Node is gone.
      for (const machine of machines) {
        const isThere = world.objects('nodes').some(({ metadata }) => metadata.name === machine.name);
        if (machine.isOff && isThere) await stage.forget(machine);
        if (!machine.isOff && !isThere) await stage.register(machine);
      }
      // What was made for objects that are lost is found by a person, also what arrives late.
      for (const ms of [0, LATE_MS]) later(ms, () => scene.services.clearLost());
      return;
    case 'kill':
      if (deed.whom === 'all') stage.killAll();
      else lifeOf(scene, deed.whom)?.kill();
      return;
    case 'pause': {
      const life = lifeOf(scene, deed.whom ?? 'leader');
      life?.pause();
      later(deed.ms, () => life?.resume());
      return;
    }
    case 'die': {
      const life = lifeOf(scene, deed.whom);
      life?.disturb(life.points.length + deed.points, { kind: 'die' });
      return;
    }
    case 'moment':
      lifeOf(scene, deed.whom)?.disturbNext(deed.call, deed.what);
      return;
    case 'vandal': {
      const machine = machines[deed.node];
      if (machine?.isOff === false && machine.whole !== undefined)
        await stage.people(machine.whole.vandalise(deed.what));
      return;
    }
    case 'wrong': {
      const machine = machines[deed.node];
      if (machine?.isOff === false) scene.takeBacks.set(deed.name, await writeWrong(stage, machine, deed));
      return;
    }
    case 'right':
      await scene.takeBacks.get(deed.name)?.();
      return;
    case 'clock':
      world.machineClock(deed.machine).stepWall(deed.ms);
      return;
    case 'disk': {
      const journal = machines[deed.node]?.whole?.host.journal;
      if (journal === undefined) return;
      journal.isFull = true;
      later(deed.ms, () => {
        journal.isFull = false;
      });
      return;
    }
    case 'close': {
      const name = machines[deed.node]?.name;
      if (name === undefined) return;
      await scene.services.changeNode({ name }, { metadata: { labels: { [CLOSED_NODE]: '' } } });
      // Its Node may be gone by then.
      const open = { metadata: { labels: { [CLOSED_NODE]: null } } };
      later(deed.ms, () => void world.admin.patch(NODES, { name }, { kind: 'merge', body: open }).catch(() => {}));
      return;
    }
    case 'service':
    case 'ingress':
    case 'end service':
    case 'end ingress':
    case 'unwell':
    case 'tamper':
    case 'untag':
      await performService(scene.services, world, deed);
  }
}

function podOptions(pod: Deed & { readonly kind: 'pod' }): Parameters<Stage['create']>[2] {
  const { isKept, isExclusive, eip, app, isGated } = pod;
  const networks = isExclusive === true ? 'tke-direct-eni' : 'tke-route-eni';
  const { annotations } = { made: EIP_MADE, kept: LASTING, none: { annotations: {} } }[eip ?? 'none'];
  return {
    annotations: {
      ...annotations,
      ...((isKept === true || isExclusive === true) && { [POD_ANNOTATION.networks]: networks }),
      ...(isKept === true && { [POD_ANNOTATION.deletePolicy]: 'Never' }),
    },
    ...(app !== undefined && { labels: { app } }),
    ...(isGated === true && { gates: [BACKEND_READY_GATE] }),
  };
}

function lifeOf({ stage, machines }: Scene, whom: Whom): Life | undefined {
  if (whom === 'leader') return stage.world.leader?.life;
  return whom === 'ccm' ? stage.world.leaderOf('ccm')?.life : machines[whom]?.whole?.life;
}
