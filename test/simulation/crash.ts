import { createHash } from 'node:crypto';
import type { ExecutionContext } from 'ava';
import type { Disturbance, Point } from './life.ts';
import { type Played, type Program, play, type Story } from './story.ts';
import type { Draw } from './streams.ts';

/** Which points of whose life are tried. */
type CrashOptions = {
  /** Default: the leader. */
  readonly program?: Program;
  /** One of so many of the story's points; default 1: all points there are. */
  readonly every?: number;
  /** Where to begin, below `every`; default 0. */
  readonly from?: number;
  /**
   * Draws one point from all there are. Then auditors alone have a say: what a story itself expects, and how it ends, is
   * told of an undisturbed one.
   */
  readonly draw?: Draw;
};

/** What a driver tried, and what came of it. */
type Driven = {
  readonly tried: number;
  readonly deaths: number;
  /** Kinds of places, and how often each was met. */
  readonly places: ReadonlyMap<string, number>;
  readonly failures: readonly string[];
  /** Identity of all runs. */
  readonly hash: string;
};

/** Real time that a driver may take, milliseconds: hundreds of runs. */
const LIMIT_MS = 1_800_000;

/** A story that is well also when the leader, or the agent of its first node, is killed at any point of it: everything comes to the same end. */
export function crashAtEach(story: Story, options: CrashOptions = {}) {
  return async (t: ExecutionContext): Promise<void> => {
    t.timeout(LIMIT_MS);
    const driven = await driveCrashes(story, options);
    t.deepEqual(driven.failures, []);
    t.is(driven.deaths, driven.tried);
    t.log(`${driven.tried} points, ${driven.places.size} kinds of places`);
  };
}

/** A story that is well also when any one request of the leader is lost, or its answer, or is late: the same end. */
export function loseEach(story: Story, options: CrashOptions = {}) {
  return async (t: ExecutionContext): Promise<void> => {
    t.timeout(LIMIT_MS);
    const driven = await driveLosses(story, options);
    t.deepEqual(driven.failures, []);
    t.log(`${driven.tried} requests, ${driven.places.size} kinds of places`);
  };
}

/** Lists the programs of a story's world. */
export function programsOf({ world = {} }: Story): readonly Program[] {
  const { agentFlags, ccmFlags, extenderFlags } = world;
  return [
    'ipamd',
    ...(agentFlags === undefined ? [] : ['agent' as const]),
    ...(ccmFlags === undefined ? [] : ['ccm' as const]),
    ...(extenderFlags === undefined ? [] : ['extender' as const]),
  ];
}

/** Calls that go on whatever happens in a story: the lock, and the look at the definitions. */
const EVERYDAY =
  / (?:configmaps(?: .*(?:-leader|tke-eni-subnets))?|endpoints|customresourcedefinitions|events|selfsubjectaccessreviews)$/;

/** Reports whether a point is one of the story: something is changed, described or seen there. */
function isOfStory({ call, moment, isChange }: Point): boolean {
  return (
    !EVERYDAY.test(call) && (isChange || moment === 'watch' || (moment === 'after' && call.startsWith('Describe')))
  );
}

/** Plays a story once undisturbed, then once for each point at which its leader or agent dies. */
export function driveCrashes(story: Story, options: CrashOptions): Promise<Driven> {
  return drive(story, options, (point) => (options.every === 1 || isOfStory(point) ? [{ kind: 'die' }] : []));
}

/** So late is an answer that its sender may have stopped to wait for it. */
const LATE_MS = 45_000;

/** A request that strays arrives before whoever waits for its effect may give up. */
const STRAY_MS = 20_000;

/** The same, with each changing request lost before its effect or after it, or late. */
export function driveLosses(story: Story, options: CrashOptions): Promise<Driven> {
  return drive(story, options, (point) =>
    point.isChange && isOfStory(point)
      ? [
          { kind: 'lose' },
          { kind: 'late', ms: LATE_MS },
          ...(point.moment === 'before' ? [{ kind: 'stray', ms: STRAY_MS } as const] : []),
        ]
      : [],
  );
}

async function drive(
  story: Story,
  { every = 1, from = 0, program = 'ipamd', draw }: CrashOptions,
  disturbancesAt: (point: Point) => readonly Disturbance[],
): Promise<Driven> {
  const calm = await play(story, { program, changesLeaders: false });
  const failures = calm.violations.map((one) => `undisturbed: ${one.auditor} ${one.text}`);
  const places = new Map<string, number>();
  const hashes = [calm.hash];
  let tried = 0;
  let deaths = 0;
  const cases = calm.points.flatMap((point, at) =>
    disturbancesAt(point).map((disturbance) => ({ point, at, disturbance })),
  );
  const chosen = draw === undefined ? undefined : Math.floor(draw() * cases.length);
  for (const [serial, { point, at, disturbance }] of cases.entries()) {
    if (chosen === undefined ? serial % every !== from : serial !== chosen) continue;
    const played = await play(story, { program, at: { point: at + 1, disturbance }, changesLeaders: false });
    tried += 1;
    hashes.push(played.hash);
    if (played.life?.isDead === true && played.life.diedAt !== undefined) deaths += 1;
    const place = `${disturbance.kind} ${point.moment} ${point.call}`;
    places.set(place, (places.get(place) ?? 0) + 1);
    const failure = draw === undefined ? compare(calm, played) : violationIn(played);
    if (failure !== undefined) failures.push(`${at + 1}: ${place}: ${failure}`);
  }
  const hash = createHash('sha256').update(hashes.join()).digest('hex').slice(0, 16);
  return { tried, deaths, places, failures, hash };
}

function violationIn({ violations }: Played): string | undefined {
  const violation = violations.find(({ auditor }) => auditor !== 'story');
  return violation && `${violation.auditor} ${violation.text}`;
}

function compare(calm: Played, played: Played): string | undefined {
  const [violation] = played.violations;
  if (violation !== undefined) return `${violation.auditor} ${violation.text}`;
  return played.end === calm.end ? undefined : `it ends as ${played.end}, undisturbed as ${calm.end}`;
}
