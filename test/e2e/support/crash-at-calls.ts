import type { ExecutionContext, TestFn } from 'ava';
import type { ScenePod } from './scene-node.ts';
import { armKill, changingPoints, everyPoint, type KillPoint, recordCalls, spread } from './strace.ts';
import { openTrial, type Trial, type TrialSpec } from './trial.ts';

// The agent is killed with SIGKILL as it enters a system call of an ADD or a DEL, one call after the other, found by
// strace from outside. Each time: start it again, judge the node, repeat the ADD, then the DEL, judge again.

/** What of the agent's system calls is tried, and for how long. */
type CrashSpec = {
  /** Every call, whatever it does; else those alone that change something outside the process. Either way spread over the whole. */
  readonly isAll: boolean;
  /** For each of the four tests, which run at the same time: as many calls are tried as fit. */
  readonly budgetMs: number;
};

/** Times that a point is tried when all are: background work shifts a count now and then. */
const TRIES = 4;
/** Least share of the points that must be reached: of a sample, and of all of them, each tried up to `TRIES` times. */
const LEAST_REACHED = { sample: 0.5, all: 0.95 } as const;

type Command = 'ADD' | 'DEL';
/** Points that were tried and not reached in one round. */
type Missed = { readonly adds: KillPoint[]; readonly dels: KillPoint[] };
type Tally = { ran: number; reached: number; missed: Missed };

const none = (): Missed => ({ adds: [], dels: [] });

/** Kills the agent at `point` of one command, starts it again and judges what is left. */
async function crashAt(trial: Trial, command: Command, point: KillPoint, pod: ScenePod): Promise<boolean> {
  const kill = await armKill(trial.agent.pid, point, trial.dir);
  const answer = command === 'ADD' ? await trial.tryAdd(pod) : await trial.tryDelete(pod);
  const wasReached = (await kill.end()) || (await isKilled(trial));
  const where = `${command} killed at ${point.name} ${point.nth} (${point.target})`;
  if (!wasReached) {
    if (answer.exitCode !== 0) throw new Error(`${where}: not reached, and yet: ${answer.stdout}`);
    return false;
  }
  // A dead agent is no error of the runtime's: ADD is to be tried again, DEL is left in the spool.
  if (command === 'ADD' && answer.exitCode !== 0 && answer.error?.code !== 11) {
    throw new Error(`${where}: ${answer.stdout}`);
  }
  if (command === 'DEL' && answer.exitCode !== 0) throw new Error(`${where}: ${answer.stdout}`);
  await trial.agent.child.exited;
  await trial.startAgent();
  await trial.settle(`after ${where}`);
  return true;
}

/** On a busy machine the process may be gone before strace has written that it killed it. */
async function isKilled({ agent: { child } }: Trial): Promise<boolean> {
  return !child.isRunning && (await child.exited).signal === 'SIGKILL';
}

async function record(trial: Trial, command: Command, pod: ScenePod, isAll: boolean): Promise<readonly KillPoint[]> {
  const calls = await recordCalls(trial.agent.pid, trial.dir, async () => {
    if (command === 'ADD') await trial.add(pod);
    else await trial.delete(pod);
  });
  return isAll ? everyPoint(calls) : changingPoints(calls);
}

/** One life of a Pod: an ADD that is cut short and repeated, then a DEL that is cut short and repeated. */
async function crashTwice(trial: Trial, add: KillPoint | undefined, del: KillPoint | undefined, tally: Tally) {
  const pod = await trial.newPod();
  if (add !== undefined) {
    tally.ran += 1;
    if (await crashAt(trial, 'ADD', add, pod)) tally.reached += 1;
    else tally.missed.adds.push(add);
  }
  const again = await trial.add(pod);
  if (isWired(trial) && !(await again.netns.ping(trial.vpc.outside.ip))) {
    throw new Error(`no answer after the ADD of ${again.ip}`);
  }
  if (del !== undefined) {
    tally.ran += 1;
    if (await crashAt(trial, 'DEL', del, pod)) tally.reached += 1;
    else tally.missed.dels.push(del);
  }
  await trial.delete(pod);
  await trial.settle('after the repeated DEL');
}

const isWired = ({ spec }: Trial): boolean => spec.plugin !== 'tke-eni-ipamc';

async function crash(t: ExecutionContext, spec: TrialSpec, { isAll, budgetMs }: CrashSpec): Promise<void> {
  t.timeout(Math.min(budgetMs * 2 + 120_000, 20 * 3_600_000));
  const trial = await openTrial(spec);
  try {
    // A neighbour that lives through all of it, and a first life that warms every code path.
    const neighbour = await trial.addPod();
    await crashTwice(trial, undefined, undefined, { ran: 0, reached: 0, missed: none() });
    const recorded = await trial.newPod();
    const adds = await record(trial, 'ADD', recorded, isAll);
    const dels = await record(trial, 'DEL', recorded, isAll);
    t.true(adds.length > 5 && dels.length > 5, `${adds.length} points of ADD, ${dels.length} of DEL`);

    const tally: Tally = { ran: 0, reached: 0, missed: none() };
    const deadline = performance.now() + budgetMs;
    let wanted: Missed = { adds: [...spread(adds)], dels: [...spread(dels)] };
    // What was not reached is tried again only when all points are wanted, and time is no matter.
    const isComplete = budgetMs === Number.POSITIVE_INFINITY;
    for (let round = 0; round < (isComplete ? TRIES : 1); round++) {
      tally.missed = none();
      const lives = Math.max(wanted.adds.length, wanted.dels.length);
      for (let life = 0; life < lives && performance.now() < deadline; life++) {
        await crashTwice(trial, wanted.adds[life], wanted.dels[life], tally);
      }
      if (round > 0) tally.ran -= wanted.adds.length + wanted.dels.length;
      wanted = tally.missed;
    }
    t.true(
      !isWired(trial) || (await neighbour.netns.ping(trial.vpc.outside.ip)),
      'the neighbour has its network still',
    );
    t.true(trial.agent.child.isRunning);
    const least = isComplete ? LEAST_REACHED.all : LEAST_REACHED.sample;
    t.true(tally.reached > least * tally.ran, `${tally.reached} of ${tally.ran} points were reached`);
    t.log(
      `figure: ${spec.ruleMode} ${spec.plugin ?? 'tke-route-eni'}${spec.gr === undefined ? '' : `, GlobalRoute, ${spec.gr.wiring}`}: killed at ${tally.reached} of ${tally.ran} points tried (ADD has ${adds.length}, DEL ${dels.length});`,
      `the invariants held ${trial.settledCount} times`,
    );
  } finally {
    await trial.close();
  }
}

/** Registers the tests of a GlobalRoute Pod, in both wirings. */
export function testBridgeCrashes(test: TestFn, what: CrashSpec): void {
  const crashes = test.macro((t, spec: TrialSpec) => crash(t, spec, what));
  for (const [ruleMode, wiring] of [
    ['compact', 'bridge'],
    ['per-pod', 'bridge'],
    ['per-pod', 'routed'],
  ] as const) {
    const gr = { cidr: '172.20.0.0/27', wiring };
    test(
      `agent: killed at a system call of ADD or DEL of a GlobalRoute Pod, no address is lost or given twice, ${ruleMode}, ${wiring}`,
      crashes,
      { ruleMode, gr },
    );
  }
}

/** Registers the tests: both layouts, and the two other executables. */
export function testCrashes(test: TestFn, what: CrashSpec): void {
  const crashes = test.macro((t, spec: TrialSpec) => crash(t, spec, what));
  for (const ruleMode of ['compact', 'per-pod'] as const) {
    test(`agent: killed at a system call of ADD or DEL, it finishes or undoes it, ${ruleMode}`, crashes, { ruleMode });
  }
  test('agent: killed at a system call of an ADD or DEL of tke-eni-ipamc', crashes, {
    ruleMode: 'compact',
    plugin: 'tke-eni-ipamc',
  });
  test('agent: killed at a system call of an ADD or DEL of tke-direct-eni, no ENI is lost or given twice', crashes, {
    ruleMode: 'compact',
    plugin: 'tke-direct-eni',
    directEnis: 4,
  });
}
