import { isRecord } from '../../runtime/decode.ts';
import { recordOf, recordsOf } from '../../runtime/json.ts';
import { necFacts } from './auditors/nec-facts.ts';
import type { Disturbance, Life, Point } from './life.ts';
import type { Machine } from './machine.ts';
import { Stage } from './stage.ts';
import type { WholeAgent } from './whole-agent.ts';
import { type LedProgram, Stopped, type Violation, World, type WorldOptions } from './world.ts';

/** A story: a world, and what happens in it. Afterwards all comes to rest, and is audited. */
export type Story = {
  readonly title: string;
  /** The one it is played with unless another is given; default 1. */
  readonly seed?: number;
  readonly world?: WorldOptions;
  readonly tell: (stage: Stage) => Promise<void>;
};

/** A program whose points are counted. */
export type Program = LedProgram | 'agent';

/** How a story is played. */
export type PlayOptions = {
  readonly seed?: number;
  /** Whose points are counted: the leader's with which the story begins, or those of the first node's agent; default the leader's. */
  readonly program?: Program;
  /** Something befalls that program: at which of its points from the begin of the story on, and what. */
  readonly at?: { readonly point: number; readonly disturbance: Disturbance };
  readonly keepsLines?: boolean;
  /** Whether leaders are changed once all is at rest, and must do nothing; default true. */
  readonly changesLeaders?: boolean;
  /** True time at which nothing more is waited for, milliseconds; default: it is played to its end. */
  readonly endMs?: number;
};

/** How a story went. */
export type Played = {
  readonly world: World;
  readonly violations: readonly Violation[];
  /** Identity of the run. */
  readonly hash: string;
  /** How it ended, without names that chance gives. */
  readonly end: string;
  /** The life of the program with which the story began, and its points from there on. */
  readonly life: Life | undefined;
  readonly points: readonly Point[];
};

const REST_MS = 3_600_000;
const LOOK_MS = 10_000;
/** So long everything has been at rest before it counts. */
const QUIET_MS = 60_000;

/** Plays a story in a world of its own, until all is at rest or something is that must not be. */
export async function play(story: Story, options: PlayOptions = {}): Promise<Played> {
  const { seed = story.seed ?? 1, keepsLines = false, program = 'ipamd', endMs = Number.POSITIVE_INFINITY } = options;
  const world = await World.open({ ...story.world, seed, keepsLines });
  const stage = new Stage(world);
  let life: Life | undefined;
  let from = 0;
  stage.onBegin = () => {
    life = lifeOf(world, program);
    from = life?.points.length ?? 0;
    if (options.at !== undefined) life?.disturb(from + options.at.point, options.at.disturbance);
  };
  await story.tell(stage).catch((error: unknown) => {
    // A story whose program was hurt may not find what it goes on with.
    if (options.at === undefined || error instanceof Stopped) ignoreStopped(error);
    else world.violate('story', String(error));
  });
  stage.heal();
  await rest(world, endMs);
  const to = life?.points.length ?? 0;
  const isWhole = world.time.nowMs < endMs;
  if (isWhole) await checkPods(world);
  const end = describeEnd(world);
  if (isWhole && options.changesLeaders !== false) await changeLeaders(world).catch(ignoreStopped);
  world.close();
  const points = life?.points.slice(from, to) ?? [];
  return { world, violations: world.violations, hash: world.record.digest(), end, life, points };
}

function lifeOf(world: World, program: Program): Life | undefined {
  if (program === 'agent') return world.machines[0]?.whole?.life;
  return world.leaderOf(program)?.life;
}

/** What stopped a story is among its violations. */
function ignoreStopped(error: unknown): void {
  if (!(error instanceof Stopped)) throw error;
}

/** Q6: at rest, CHECK of each Pod finds nothing. */
async function checkPods(world: World): Promise<void> {
  if (world.violations.length > 0) return;
  for (const { whole, isOff } of world.machines)
    if (whole !== undefined && !isOff)
      for (const line of await world.run(whole.runtime.check())) world.violate('Q6', line);
}

/** Waits until nothing is under way, and nothing is not as it must be; no longer than until a time. */
async function rest(world: World, untilMs: number): Promise<void> {
  const endMs = world.time.nowMs + REST_MS;
  let quietMs = 0;
  while (world.violations.length === 0 && quietMs < QUIET_MS && world.time.nowMs < untilMs) {
    await world.pass(LOOK_MS);
    const unrest = world.unrest();
    quietMs = unrest.length === 0 ? quietMs + LOOK_MS : 0;
    if (world.time.nowMs >= endMs) for (const text of unrest) world.violate('rest', text);
  }
}

const CHANGE_MS = 120_000;
/** rtm_protocol of the agent's routes and rules. */
const OUR_PROTOCOL = 84;

/** Q7: at rest, a new leader and new agents change nothing. Not judged while something wrong is in force. */
async function changeLeaders(world: World): Promise<void> {
  if (world.violations.length > 0) return;
  if (isWrong(world)) return;
  const before = describeState(world);
  const called = world.host.seen.length;
  const kernels = world.machines.map(kernelOf);
  for (const program of ['ipamd', 'ccm', 'extender'] as const) world.leaderOf(program)?.life?.kill();
  for (const { whole } of world.machines) whole?.kill();
  await world.until('others lead', () => world.isLed);
  await world.pass(CHANGE_MS);
  for (const [at, machine] of world.machines.entries())
    if (kernelOf(machine) !== kernels[at])
      world.violate('Q7', `a new agent at rest changes the kernel of ${machine.name}`);
  const changes = world.host.seen.slice(called).filter(({ action }) => !action.startsWith('Describe'));
  for (const { action } of changes) world.violate('Q7', `a new leader at rest calls ${action}`);
  if (describeState(world) !== before) world.violate('Q7', 'a new leader at rest changes the supply');
}

/**
 * Reports whether a Pod of a wrong writer waits, or a setting is wrong: a new leader tries again what was refused, a sandbox is made again and again,
 * and nodes wait until the wrong setting was looked at.
 */
function isWrong(world: World): boolean {
  const waits = world
    .objects('pods')
    .some(({ metadata, status }) => metadata.name.startsWith('wrong-') && recordOf(status)['podIP'] === undefined);
  const conditions = world.objects('nodeeniconfigs').flatMap(({ status }) => recordsOf(recordOf(status)['conditions']));
  return waits || conditions.some(({ type, status }) => type === 'ConfigValid' && status === 'False');
}

function kernelOf({ whole }: Machine): string | undefined {
  return whole === undefined ? undefined : JSON.stringify(describeKernel(whole));
}

/** What each node has and, where no agent is new and no offer has to be confirmed, which revision of its object says so. */
function describeState(world: World): string {
  const hasAgents = world.machines.some(({ whole }) => whole !== undefined);
  const nodes = world.objects('nodeeniconfigs').map((object) => {
    const { spec, status } = necFacts(object);
    const isWritten = hasAgents || (spec.releasableIPs ?? []).length > 0;
    return [object.metadata.name, status.eniInfos, isWritten ? '' : object.metadata['resourceVersion']];
  });
  // The order of fields says nothing.
  return JSON.stringify(nodes, (_name, value: unknown) =>
    isRecord(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
}

function describeEnd(world: World): string {
  const nodes = world.objects('nodeeniconfigs').map((object) => {
    const { spec, status } = necFacts(object);
    const enis = (status.eniInfos ?? []).map(
      ({ state, mode = 'route-eni', addresses = [] }) => `${mode} ${state} ${addresses.length}`,
    );
    return [object.metadata.name, spec.desiredRouteENIIP, enis.sort(), (status.intents ?? []).length];
  });
  const pods = world.objects('pods').map((pod) => [pod.metadata.name, recordOf(pod['status'])['podIP'] !== undefined]);
  const claims = world.objects('vpcipclaims').map((one) => [one.metadata.name, recordOf(one['status'])['phase']]);
  const eips = world
    .objects('eipclaims')
    .map((one) => [one.metadata.name, recordsOf(recordOf(one['status'])['intents']).length]);
  const enis = [...world.host.model.state.enis.values()].filter(({ isPrimary }) => !isPrimary).length;
  const kernels = world.machines.flatMap(({ whole }) => (whole === undefined ? [] : [describeKernel(whole)]));
  const state = { nodes, pods, claims, eips, enis, bound: world.host.model.state.eips.size, kernels };
  return JSON.stringify({ ...state, ...(world.ccms.length === 0 ? {} : describeBalancers(world)) });
}

/** What the cloud controller manager makes: Nodes as it left them, load balancers by the names of their owners, and counts of all else. */
function describeBalancers(world: World): object {
  const { clb, certificates, securityGroups } = world.host.model.state;
  const balancers = [...clb.balancers().values()].map(({ name, type, listeners, securityGroupIds }) => {
    const its = [...listeners.values()].map(
      ({ protocol, port, targets, layer7 }) => `${protocol}/${port} ${targets.size} ${layer7?.rules.size ?? 0}`,
    );
    return [name, type, its.sort(), securityGroupIds.length];
  });
  const services = world.objects('services').map(({ metadata }) => [metadata.name, metadata.finalizers?.length ?? 0]);
  const machines = world.objects('nodes').map(({ metadata, spec, status }) => {
    const { labels = {}, annotations = {}, name } = metadata;
    const taints = recordsOf(recordOf(spec)['taints']).map(({ key }) => key);
    const { addresses, conditions } = recordOf(status);
    const said = recordsOf(conditions).map(({ type, status: is }) => `${type} ${is}`);
    return [name, Object.entries(labels).sort(), Object.keys(annotations).sort(), taints, addresses, said];
  });
  return { machines, services, balancers, certificates: certificates.all().length, groups: securityGroups.made.size };
}

/** What a machine has: counts of what an agent makes. */
function describeKernel({ host, leases }: WholeAgent): unknown {
  const { kernel } = host;
  const { link, route, rule } = kernel.openRtnetlink(kernel.host);
  // An ENI's table is numbered by its link.
  const tables = route.list({ family: 2, protocol: OUR_PROTOCOL }).map(({ table }) => (table > 4002 ? 'ENI' : table));
  const routes = Map.groupBy(tables, (table) => String(table));
  const chains = [...(kernel.namespace('host')?.nft.values() ?? [])].map(({ size }) => size);
  return {
    ...{ leases: leases.map(({ state }) => state), links: link.list().length, chains, sandboxes: host.sandboxes.size },
    routes: [...routes].map(([table, { length }]) => `${table}: ${length}`).sort(),
    rules: rule.list({ family: 2 }).filter(({ protocol }) => protocol === OUR_PROTOCOL).length,
  };
}
