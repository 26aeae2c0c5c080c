import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import { type Finding, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import type { Child } from '../../../sim/support/child.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import type { RunResult } from '../../../sim/support/run.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { type Answer, causesOf, disagreementsOf, type NodeAnswers } from '../../inspection/judge/node-answers.ts';
import { findViolations } from '../../support/invariants.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { firstBroken } from './explanation-text.ts';
import { type FaultScene, readFaultScene } from './fault-scene.ts';
import { changesBetween, kernelImage } from './kernel-image.ts';
import type { NodeFault } from './node-fault.ts';
import { askCli, type CliPlace, listOf, runCli } from './run-cli.ts';
import type { AttachedPod } from './scene-node.ts';
import { openTrial, type Trial, type TrialSpec } from './trial.ts';

/** How long a ping of a broken way waits: an answer takes microseconds, a lost first solicitation a second. */
const LOST_AFTER_MS = 1_500;

/**
 * Tries `tke-eni` with each fault, on one node whose agent was killed: diff finds it, a dry run changes nothing, repair
 * mends what is ours until packets flow, and refuses what is not; explain and doctor name it, explain alike with an agent
 * that answers and without one.
 */
export function testFaults(
  test: TestFn,
  faults: readonly NodeFault[],
  spec: TrialSpec = { ruleMode: 'compact' },
): void {
  let trial: Trial | undefined;
  let pod: AttachedPod | undefined;
  let explainer: ExplainServer | undefined;
  test.before(async (t) => {
    t.timeout(240_000);
    await buildExecutables(['tke-eni']);
    trial = await openTrial(spec);
    pod = await trial.addPod();
    await trial.addPod();
    await trial.killAgent();
    t.is((await runCli(placeOf(trial), 'diff')).code, 0, 'the node is as it should be');
    explainer = await startExplainServer(trial);
  });
  test.after.always(async () => {
    await explainer?.stop();
    await trial?.close();
  });
  for (const fault of faults) {
    test.serial(`tke-eni diff and repair: ${fault.name}`, async (t) => {
      t.timeout(60_000);
      if (trial === undefined || pod === undefined || explainer === undefined) throw new Error('there is no node');
      const scene = await readFaultScene(trial, pod);
      try {
        await tryFault(t, fault, scene, explainer);
      } finally {
        if (!t.passed) await setRight(fault, scene);
      }
    });
  }
}

/** What failed must not make the faults after it fail. */
async function setRight(fault: NodeFault, scene: FaultScene): Promise<void> {
  try {
    await fault.undo?.(scene);
  } catch {
    // It was not injected, or is taken back already.
  }
  await runCli(placeOf(scene.trial), 'repair');
}

/** A process that answers Explain as the agent does. */
type ExplainServer = {
  readonly socketPath: string;
  readonly child: Child;
  /** Number of explanations that it made. */
  answered(): number;
  stop(): Promise<unknown>;
};

async function startExplainServer(trial: Trial): Promise<ExplainServer> {
  const { stateDir } = trial.agent;
  const socketPath = `${stateDir}/explain.sock`;
  const program = join(import.meta.dirname, 'explain-server.ts');
  const child = trial.node.netns.start([process.execPath, program, socketPath, stateDir]);
  await waitUntil(() => child.stdout.includes('listening'), {
    what: 'the explaining process listens',
    timeoutMs: 60_000,
    explain: () => child.stderr,
  });
  const answered = () => child.stdout.split('\n').filter((line) => line === 'explained').length;
  return { socketPath, child, answered, stop: () => child.stop() };
}

/** Where the CLI finds a trial's node. */
export function placeOf(trial: Trial): CliPlace {
  const { stateDir, socketPath } = trial.agent;
  return { netns: trial.node.netns, stateDir, socketPath };
}

async function tryFault(
  t: ExecutionContext,
  fault: NodeFault,
  scene: FaultScene,
  explainer: ExplainServer,
): Promise<void> {
  const place = placeOf(scene.trial);
  await fault.inject(scene);
  t.is(await pings(scene, fault.breaksPackets), !fault.breaksPackets, 'packets to the outside');

  const diff = await askCli(place, 'diff');
  t.is(diff.code, 1, 'diff finds it');
  const found = listOf(diff.document, 'differences').filter(({ id }) => id === fault.expects.diff);
  t.not(found.length, 0, `diff calls it ${fault.expects.diff}: ${JSON.stringify(diff.document)}`);
  t.true(
    found.some(({ isOurs }) => isOurs === fault.isOurs),
    'diff says whose it is',
  );
  const explained = await explainAndDoctorNameIt(t, place, fault, scene);
  t.deepEqual(disagreementsOf(await allAnswers(place, scene)), [], 'all commands say the same');
  await agentExplainsLikewise(t, place, explainer, scene, explained);
  await dryRunChangesNothing(t, place, scene);
  await (fault.expects.repair === 'mends' ? mends(t, place, fault, scene) : refuses(t, place, fault, scene));
  t.true(await pings(scene), 'packets flow again');
  t.is((await runCli(place, 'diff')).code, 0, 'no difference is left');
  t.deepEqual(await findViolations(scene.trial.scope()), [], 'iproute2 and nft say so too');
}

async function explainAndDoctorNameIt(
  t: ExecutionContext,
  place: CliPlace,
  { expects, breaksPackets }: NodeFault,
  { trial, pod }: FaultScene,
): Promise<RunResult> {
  const doctor = await askCli(place, 'doctor');
  t.true(findingIds(doctor.document).includes(expects.doctor), `doctor: ${JSON.stringify(doctor.document)}`);
  const explain = await runCli(place, 'explain', ...wayOut(trial, pod));
  const document: Explanation = JSON.parse(explain.stdout);
  if (breaksPackets) t.is(explain.code, 1, 'explain says that packets are lost');
  // Where packets pass, no hop is broken; where they fail, the first broken one has the fault's finding.
  t.is(firstBroken(document)[0], breaksPackets ? expects.explain : undefined, explain.stdout);
  if (expects.explain === undefined) {
    t.false(breaksPackets, 'explain must see what breaks packets');
  } else t.true(findingIds(document).includes(expects.explain), `explain: ${explain.stdout}`);
  return explain;
}

/** What each command says of the node at this moment. */
async function allAnswers(place: CliPlace, { pod }: FaultScene): Promise<NodeAnswers> {
  const answer = async (command: string, ...words: readonly string[]): Promise<Answer> => {
    const { code, document } = await askCli(place, command, ...words);
    const findings = command === 'explain' ? causesOf(JSON.parse(JSON.stringify(document))) : findingsIn(document);
    return { command, findings: uniqueFindings(findings), isGood: code === 0 };
  };
  const element = `pod:${pod.containerId}/eth0`;
  const diff = await answer('diff');
  return {
    doctor: await answer('doctor'),
    graph: await answer('graph'),
    explained: new Map([[element, { ...(await answer('explain', pod.ip)), element }]]),
    // What repair does is tried below.
    planned: { diff, repair: diff, checked: new Map([[element, await answer('check', pod.ip)]]) },
  };
}

/** Words that ask for the way of a Pod's packets to the outside, as a document. */
function wayOut({ vpc }: Trial, pod: AttachedPod): readonly string[] {
  return [pod.ip, '--to', vpc.outside.ip, '-o', 'json'];
}

/**
 * An agent that answers, and none: the same text, document and exit code.
 * @param explained What was said of the way out without an agent
 */
async function agentExplainsLikewise(
  t: ExecutionContext,
  place: CliPlace,
  explainer: ExplainServer,
  { trial, pod }: FaultScene,
  explained: RunResult,
): Promise<void> {
  const ask = async (words: readonly string[]): Promise<RunResult> => {
    const before = explainer.answered();
    const answer = await runCli({ ...place, socketPath: explainer.socketPath }, 'explain', ...words);
    t.is(explainer.answered(), before + 1, `the agent answers ${words.join(' ')}: ${explainer.child.stdout}`);
    return answer;
  };
  for (const [words, known] of [[[pod.ip]], [wayOut(trial, pod), explained]] as const) {
    let byItself = known ?? (await runCli(place, 'explain', ...words));
    let byAgent = await ask(words);
    // The kernel forgets a neighbour that did not answer, also between the two.
    for (let more = 0; more < 2 && byAgent.stdout !== byItself.stdout; more++) {
      byItself = await runCli(place, 'explain', ...words);
      byAgent = await ask(words);
    }
    t.is(byAgent.stdout, byItself.stdout, words.join(' '));
    t.deepEqual([byAgent.code, byAgent.stderr], [byItself.code, byItself.stderr]);
  }
}

function findingIds(document: unknown): readonly string[] {
  return findingsIn(document).map(({ id }) => id);
}

/** The findings anywhere in a document. */
function findingsIn(value: unknown): readonly Finding[] {
  if (Array.isArray(value)) return value.flatMap(findingsIn);
  if (!isObject(value)) return [];
  return [...(isFinding(value) ? [value] : []), ...Object.values(value).flatMap(findingsIn)];
}

function isFinding(value: object): value is Finding {
  return ['id', 'severity', 'what', 'fix', 'subjects'].every((name) => name in value);
}

async function dryRunChangesNothing(t: ExecutionContext, place: CliPlace, { trial, pod }: FaultScene): Promise<void> {
  const views = [trial.node.netns, pod.netns];
  const before = await kernelImage(views);
  const { code } = await runCli(place, 'repair', '--dry-run');
  t.is(code, 1, 'a dry run says that something is wrong');
  t.deepEqual(changesBetween(before, await kernelImage(views)), [], 'a dry run changes nothing');
}

async function mends(t: ExecutionContext, place: CliPlace, fault: NodeFault, scene: FaultScene): Promise<void> {
  const { code, stdout } = await runCli(place, 'repair');
  t.is(code, 0, stdout);
  t.regex(stdout, /^(ip|sysctl|nft|nsenter) /m, 'it prints what it does as commands');
  t.true(await pings(scene), 'packets flow again');
  await fault.undo?.(scene);
}

async function refuses(t: ExecutionContext, place: CliPlace, fault: NodeFault, scene: FaultScene): Promise<void> {
  const { code, document } = await askCli(place, 'repair');
  t.is(code, 1, 'repair does not say that all is well');
  const left = listOf(document, 'left').find(({ id }) => id === fault.expects.diff);
  t.is(left?.['isOurs'], false, 'repair says that it is not ours');
  t.true(Array.isArray(left?.['fix']) && left['fix'].length > 0, 'repair says what to do');
  t.is((await askCli(place, 'diff')).code, 1, 'it is still there');
  await cure(left, fault, scene);
  // What the foreign thing stood in the place of can be put back now.
  const after = await runCli(place, 'repair');
  t.is(after.code, 0, after.stdout);
}

/** Does what the finding says, where it says a command; else as a person would. */
async function cure(finding: JsonObject | undefined, fault: NodeFault, scene: FaultScene): Promise<void> {
  const [step]: readonly unknown[] = Array.isArray(finding?.['fix']) ? finding['fix'] : [];
  if (typeof step !== 'string' || !step.startsWith('ip ')) await fault.undo?.(scene);
  else await scene.trial.node.netns.run(['sh', '-e', '-c', step]);
}

function pings({ trial, pod }: FaultScene, isBroken = false): Promise<boolean> {
  return pod.netns.ping(trial.vpc.outside.ip, isBroken ? { waitMs: LOST_AFTER_MS } : {});
}
