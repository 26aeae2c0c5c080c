import { recordOf, recordsOf } from '../../runtime/json.ts';
import { necFacts } from './auditors/nec-facts.ts';
import type { Disturbance, Life, Point } from './life.ts';
import { Stage } from './stage.ts';
import { Stopped, type Violation, World, type WorldOptions } from './world.ts';

/** A story: a world, and what happens in it. Afterwards all comes to rest, and is audited. */
export type Story = {
  readonly title: string;
  readonly world?: WorldOptions;
  readonly tell: (stage: Stage) => Promise<void>;
};

/** How a story is played. */
type PlayOptions = {
  readonly seed?: number;
  /** Something befalls the leader with which the story begins: at which of its points from there on, and what. */
  readonly at?: { readonly point: number; readonly disturbance: Disturbance };
  readonly keepsLines?: boolean;
  /** Whether leaders are changed once all is at rest, and must do nothing; default true. */
  readonly changesLeaders?: boolean;
};

/** How a story went. */
export type Played = {
  readonly world: World;
  readonly violations: readonly Violation[];
  /** Identity of the run. */
  readonly hash: string;
  /** How it ended, without names that chance gives. */
  readonly end: string;
  /** The life of the leader with which the story began, and its points from there on. */
  readonly leader: Life | undefined;
  readonly points: readonly Point[];
};

const REST_MS = 2_400_000;
const LOOK_MS = 10_000;
/** So long everything has been at rest before it counts. */
const QUIET_MS = 60_000;

/** Plays a story in a world of its own, until all is at rest or something is that must not be. */
export async function play(story: Story, options: PlayOptions = {}): Promise<Played> {
  const { seed = 1, keepsLines = false } = options;
  const world = await World.open({ ...story.world, seed, keepsLines });
  const stage = new Stage(world);
  let leader: Life | undefined;
  let from = 0;
  stage.onBegin = () => {
    leader = world.leader?.life;
    from = leader?.points.length ?? 0;
    if (options.at !== undefined) leader?.disturb(from + options.at.point, options.at.disturbance);
  };
  await story.tell(stage).catch(ignoreStopped);
  stage.heal();
  await rest(world);
  const to = leader?.points.length ?? 0;
  const end = describeEnd(world);
  if (options.changesLeaders !== false) await changeLeaders(world).catch(ignoreStopped);
  world.close();
  const points = leader?.points.slice(from, to) ?? [];
  return { world, violations: world.violations, hash: world.record.digest(), end, leader, points };
}

/** What stopped a story is among its violations. */
function ignoreStopped(error: unknown): void {
  if (!(error instanceof Stopped)) throw error;
}

/** Waits until nothing is under way, and nothing is not as it must be. */
async function rest(world: World): Promise<void> {
  const endMs = world.time.nowMs + REST_MS;
  let quietMs = 0;
  while (world.violations.length === 0 && quietMs < QUIET_MS) {
    await world.pass(LOOK_MS);
    const unrest = world.unrest();
    quietMs = unrest.length === 0 ? quietMs + LOOK_MS : 0;
    if (world.time.nowMs >= endMs) for (const text of unrest) world.violate('rest', text);
  }
}

const CHANGE_MS = 120_000;

/** Q7: at rest, a new leader changes nothing. */
async function changeLeaders(world: World): Promise<void> {
  if (world.violations.length > 0) return;
  const before = describeState(world);
  const called = world.host.seen.length;
  world.leader?.life?.kill();
  await world.until('another leads', () => world.leader !== undefined);
  await world.pass(CHANGE_MS);
  const changes = world.host.seen.slice(called).filter(({ action }) => !action.startsWith('Describe'));
  for (const { action } of changes) world.violate('Q7', `a new leader at rest calls ${action}`);
  if (describeState(world) !== before) world.violate('Q7', 'a new leader at rest changes the supply');
}

function describeState(world: World): string {
  return JSON.stringify(
    world.objects('nodeeniconfigs').map((object) => [object.metadata.name, necFacts(object).status.eniInfos]),
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
  return JSON.stringify({ nodes, pods, claims, eips, enis, bound: world.host.model.state.eips.size });
}
