import { classifyError } from '../../cloud/classify-error.ts';
import type { CloudTask, Eni, TaskOutcome } from '../../cloud/cloud.ts';
import { DEADLINE_CODE, isCloudError, type Retry } from '../../cloud/cloud-error.ts';
import { MUTATIONS } from '../../crd/intent.ts';
import { mayArriveUntilMs } from '../decide/decide-intent-resolution.ts';
import type { CloudSnapshot, Intent, IntentFailure, IntentOutcome, ObservedEni } from '../decide/decision.ts';
import {
  ENI_GONE_CODE,
  evaluateIntent,
  type IntentEvaluation,
  MOVING_CODE,
  NOT_MOVED_CODE,
} from '../decide/evaluate-intent.ts';
import { isValidEni } from '../decide/observed-eni.ts';
import { checkSourceReleased } from './check-source-released.ts';
import { isTakenLately, mayBeOfBefore } from './eni-changes.ts';
import type { NodeDeps } from './node-deps.ts';
import { sinceMsOf } from './node-memory.ts';
import {
  endProbes,
  failureOf,
  type IntentCase,
  isRefusal,
  keepUnsent,
  noteAccepted,
  noteDone,
  pauseOf,
  refuse,
  refuseExhausted,
  TASK_CODE,
  trackDescribe,
  UNCONFIRMED_CODE,
} from './note-refusal.ts';
import { MAX_DESCRIPTION_AGE_MS } from './recent-changes.ts';
import { type Accepted, resultOf, sendCall, taskOf } from './send-call.ts';

/** How long a call waits for its task before it is recorded as accepted. */
const SETTLE_MS = 15_000;
/** How long an accepted task is followed before the object is checked again. */
const FOLLOW_MS = 60_000;
/** After a failed task the description may lag. */
const DESCRIBE_RETRY_MS = 2_000;
const MAX_DESCRIBES = 15;
const MAX_DESCRIBE_PAUSE_MS = 20_000;
/**
 * A call without a ClientToken is sent at most so often without an answer; then it counts as refused when the description
 * does not show it as done.
 */
const MAX_TRIES = 6;
const UNCONFIRMED: IntentFailure = { code: UNCONFIRMED_CODE, message: 'not confirmed yet' };
/** Errors that may mean that the ENI is in another state than the object contains. */
const CONTRADICTIONS: readonly Retry[] = ['never', 'gone', 'busy'];

/**
 * Sends the call of an intent and waits, bounded, for its task. The intent must be recorded before. Returns the outcome
 * as data; throws only the signal's reason. Trips and resets breakers.
 */
export async function sendIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const { node: owner, intent, status, priority } = one;
  const notReleased = await checkSourceReleased(deps, one, signal);
  if (notReleased !== undefined) return refuse(deps, one, notReleased);
  let accepted: Accepted;
  try {
    const timeoutMs = intent.requestTimeoutSeconds * 1000;
    accepted = await sendCall(deps.cloud, intent, status, { priority, owner, signal, timeoutMs });
  } catch (error) {
    return await handleCallError(deps, one, signal, error);
  }
  noteAccepted(deps, one);
  const { eni, ips = intent.ips, task } = accepted;
  const created = eni && (await observeCreated(deps, one, eni, signal));
  const known: Intent = {
    ...intent,
    ...(eni === undefined ? {} : { eniID: eni.eniId }),
    ...(ips === undefined ? {} : { ips }),
    ...(task === undefined ? {} : { taskID: task.taskId }),
  };
  return await awaitTask(deps, { ...one, intent: known }, task, SETTLE_MS, signal, created);
}

/** Follows the task of an accepted intent; returns the same outcome again while it still runs. */
export async function followIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const task = taskOf(one.intent);
  if (task === undefined) return await resolveUntilKnown(deps, one, signal, UNCONFIRMED);
  return await awaitTask(deps, one, task, FOLLOW_MS, signal);
}

/** Evaluates a call that failed while the signal is not aborted. */
async function handleCallError(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
  error: unknown,
): Promise<IntentOutcome> {
  signal.throwIfAborted();
  if (!isCloudError(error)) throw error;
  const failure = failureOf(error);
  if (failure.code === DEADLINE_CODE) return keepUnsent(deps, one, failure);
  if (error.retry === 'quota') return refuseExhausted(deps, one, error);
  if (error.retry === 'resolve') {
    endProbes(deps, one);
    return { kind: 'unclear', error: failure };
  }
  if (CONTRADICTIONS.includes(error.retry) && one.intent.action !== 'CreateNetworkInterface')
    return await resolveUntilKnown(deps, one, signal, failure);
  return refuse(deps, one, failure, pauseOf(error));
}

/**
 * Waits for the task of a call; a call without one is done. Returns its result from the record where that contains it, and
 * from a description where it does not, or where the task did not reach its goal.
 * @param created the ENI in the answer of a creation
 */
async function awaitTask(
  deps: NodeDeps,
  one: IntentCase,
  task: CloudTask | undefined,
  timeoutMs: number,
  signal: AbortSignal,
  created?: ObservedEni,
): Promise<IntentOutcome> {
  const { action, ips, taskID = '' } = one.intent;
  const settled: TaskOutcome = task === undefined ? { kind: 'done' } : await settle(deps, one, task, timeoutMs, signal);
  if (settled.kind === 'pending') {
    const eni = created === undefined ? {} : { eni: { ...created, ips: [] } };
    return { kind: 'accepted', taskId: taskID, ...eni, ...(ips === undefined ? {} : { ips }) };
  }
  if (settled.kind !== 'done') {
    // A task of the VPC has the RequestId of its call.
    const failed = { code: TASK_CODE.failed, requestId: taskID };
    const lost = { code: TASK_CODE.lost, message: 'the cloud knows no such task' };
    const failure = settled.kind === 'failed' ? { ...failed, message: settled.reason } : lost;
    if (settled.kind === 'failed' && mayHaveBeenDone(one.intent)) {
      deps.memory.requestDescribe(one.node, `a task failed: ${settled.reason}`);
      return refuse(deps, one, failure);
    }
    return await resolveUntilKnown(deps, one, signal, failure);
  }
  // The cloud may have answered a token that it knew, with the success of a call whose effect is undone since.
  if (settled.isUnseen === true && MUTATIONS[action].takesClientToken)
    return await resolveUntilKnown(deps, one, signal, UNCONFIRMED);
  noteDone(deps, one);
  const result = resultOf(one.intent, created);
  return result === undefined ? await resolveUntilKnown(deps, one, signal, UNCONFIRMED) : { kind: 'done', result };
}

/**
 * Describes until the ENI is at rest and the call is known to be done, refused, or to be sent again (`repeat`). Throws only
 * the signal's reason.
 * @param failure why a call is looked for that has an answer, which counts when it is not done: then it is never sent again.
 * The search is bounded, and the call refused also when it is done by the cloud's own account while no description shows it:
 * with its token it would be answered the same again
 */
export async function resolveUntilKnown(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
): Promise<IntentEvaluation>;
export async function resolveUntilKnown(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
  failure: IntentFailure,
): Promise<IntentOutcome>;
export async function resolveUntilKnown(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
  failure?: IntentFailure,
): Promise<IntentEvaluation> {
  const { clock, ids, memory } = deps;
  const lastError = failure === undefined ? one.intent.lastError : { ...failure, at: ids.now() };
  const sought = { ...one, intent: { ...one.intent, ...(lastError === undefined ? {} : { lastError }) } };
  const certainMs = certainFromMs(deps, sought);
  let seen: IntentEvaluation | undefined;
  let undone = 0;
  for (let looks = 1; failure === undefined || looks <= MAX_DESCRIBES; looks++) {
    try {
      seen = await lookOnce(deps, sought, seen, certainMs, signal);
      if (seen === 'repeat' ? failure === undefined : seen.kind !== 'unclear') return seen;
      if (seen === 'repeat') undone += 1;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
    }
    const pauses = failure === undefined ? looks : 1;
    await clock.sleep(Math.min(DESCRIBE_RETRY_MS * pauses, MAX_DESCRIBE_PAUSE_MS), signal);
  }
  const isUndone = failure.code === UNCONFIRMED_CODE && undone === MAX_DESCRIBES && taskOf(one.intent) !== undefined;
  if (!isUndone) return { kind: 'unclear', error: failure };
  memory.requestDescribe(one.node, 'the cloud calls a call done that no description shows');
  return refuse(deps, one, { ...failure, message: 'the cloud calls it done, and no description shows it' });
}

/**
 * Evaluates a call by one description. `repeat`: it is not done and may be sent again. An ENI that is missing counts as
 * gone, whatever that means for the call, when the description `before` lacked it too and no description can be older than
 * the ENI, or when the cloud refused the call for that. Otherwise a call is neither done nor refused by a description that
 * may be older than it is. @param certainMs from when on no description is. @throws CloudError when the cloud cannot be described
 */
async function lookOnce(
  deps: NodeDeps,
  one: IntentCase,
  before: IntentEvaluation | undefined,
  certainMs: number,
  signal: AbortSignal,
): Promise<IntentEvaluation> {
  const { node, intent, status } = one;
  const beganMs = deps.clock.monotonicMs();
  const snapshot = await observeCloud(deps, one, signal);
  const { changes } = deps.memory;
  const last = intent.lastError;
  const refusal = last !== undefined && isRefusal(intent, last) ? last : undefined;
  const missing = findMissing(intent, snapshot);
  const sinceMs = deps.memory.of(node).eniSinceMs.get(missing ?? '') ?? Number.NEGATIVE_INFINITY;
  const isYoung = deps.clock.monotonicMs() - sinceMs <= MAX_DESCRIPTION_AGE_MS;
  const isSure = (isMissingEni(before) && !isYoung) || (last !== undefined && isRefusedAsGone(intent, last));
  if (missing !== undefined && !isSure) return unclear(ENI_GONE_CODE, `no description shows ${missing}`);
  const seen = evaluateIntent(intent, snapshot, status, (ip) => isTakenLately(changes, node, ip, beganMs));
  if (seen === 'repeat') {
    const failure = refusal ?? (isGivenUp(intent) ? last : undefined);
    return failure === undefined ? seen : refuse(deps, one, failure);
  }
  const isDenied = refusal !== undefined && refusal.code !== TASK_CODE.lost;
  if (seen.kind === 'refused' && missing === undefined && !isDenied && beganMs < certainMs)
    return unclear(MOVING_CODE, `${seen.error.message}, by a description that may be older than the call`);
  if (seen.kind === 'done' && missing === undefined && mayBeOfBefore(changes, node, intent, beganMs))
    return unclear(MOVING_CODE, 'the description may be of before, when it was so too');
  if (seen.kind === 'refused' && seen.error.code === NOT_MOVED_CODE) return refuse(deps, one, refusal ?? seen.error);
  if (seen.kind === 'refused') {
    deps.memory.requestDescribe(node, `a call contradicts the object: ${seen.error.message}`);
    return refuse(deps, one, seen.error, CONTRADICTED_MS);
  }
  if (seen.kind !== 'done') return seen;
  // A description that contradicts itself; the next one may be better.
  if ('eni' in seen.result && !isValidEni(seen.result.eni))
    return unclear(MOVING_CODE, `the description of ${seen.result.eni.eniID} is incomplete`);
  noteDone(deps, one);
  return seen;
}

/** Returns from when on no description is older than a call; monotonic milliseconds. */
function certainFromMs({ clock, leader, memory }: NodeDeps, { node, intent }: IntentCase): number {
  const firstSeenMs = sinceMsOf(memory.of(node), intent.id) ?? clock.monotonicMs();
  const context = { ownEpoch: leader.epoch, firstSeenMs, leaseMs: leader.term.leaseMs };
  return mayArriveUntilMs(intent, context) + MAX_DESCRIPTION_AGE_MS;
}

/** Reports whether a description of before the call may show its effect: it names addresses, which were there before perhaps. */
function mayHaveBeenDone({ action, ips, ipCount }: Intent): boolean {
  return (
    action === 'MigratePrivateIpAddress' ||
    (action === 'AssignPrivateIpAddresses' && ips !== undefined && ipCount === undefined)
  );
}

/** How long a call is blocked when object and cloud disagree about an ENI: asked again at once, it would fail again. */
const CONTRADICTED_MS = 30_000;

/**
 * Reports whether a call without an answer was sent often enough. With a ClientToken repeating is always safe, and giving up
 * may leave an unknown ENI. An attachment creates nothing. A deletion is given up, though repeating is safe: then the node
 * says that the cloud refuses it, and it is decided again.
 */
function isGivenUp({ action, tries = 1 }: Intent): boolean {
  const mayGiveUp = action === 'AttachNetworkInterface' || !MUTATIONS[action].takesClientToken;
  return mayGiveUp && tries >= MAX_TRIES;
}

function unclear(code: string, message: string): IntentOutcome {
  return { kind: 'unclear', error: { code, message } };
}

/** Returns the ENI of the call that a description lacks; undefined when it lacks none. */
function findMissing(intent: Intent, { enis }: CloudSnapshot): string | undefined {
  const { action, eniID, targetENIID } = intent;
  const wanted = action === 'MigratePrivateIpAddress' ? targetENIID : eniID;
  return action === 'CreateNetworkInterface' || wanted === undefined || enis.has(wanted) ? undefined : wanted;
}

function isMissingEni(before: IntentEvaluation | undefined): boolean {
  if (before === undefined || before === 'repeat' || !('error' in before)) return false;
  return before.error.code === ENI_GONE_CODE;
}

function isRefusedAsGone({ action }: Intent, { code }: IntentFailure): boolean {
  return classifyError({ code, action, text: '' }).retry === 'gone';
}

async function observeCloud(
  deps: NodeDeps,
  { node, uid, intent, status }: IntentCase,
  signal: AbortSignal,
): Promise<CloudSnapshot> {
  const isNew = intent.action === 'CreateNetworkInterface' && intent.eniID === undefined;
  const request = {
    uid,
    instanceId: intent.instanceID ?? status.instanceID,
    eniIds: [intent.eniID, intent.targetENIID].filter((id) => id !== undefined),
    scope: isNew ? ('own' as const) : ('known' as const),
  };
  deps.metrics.nodeDescribes.inc();
  return await trackDescribe(deps, node, () =>
    deps.cloudObserver.observe(request, { priority: 'warm', owner: node, signal }),
  );
}

/** Converts the ENI in the answer of a creation; undefined when it lacks something that a description will have. */
async function observeCreated(
  deps: NodeDeps,
  { node, uid, status }: IntentCase,
  eni: Eni,
  signal: AbortSignal,
): Promise<ObservedEni | undefined> {
  try {
    // The first addresses of a new ENI are usable once its task is done.
    const created = { ...eni, ips: eni.ips.map((ip) => ({ ...ip, state: 'AVAILABLE' as const })) };
    const owner = { uid, instanceId: status.instanceID };
    const observed = await deps.cloudObserver.convertEni(created, owner, { priority: 'warm', owner: node, signal });
    return isValidEni(observed) ? observed : undefined;
  } catch (error) {
    if (isCloudError(error)) return undefined;
    throw error;
  }
}

async function settle(
  deps: NodeDeps,
  { node, intent, priority }: IntentCase,
  task: CloudTask,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  try {
    const isNew = !mayBeOfBefore(deps.memory.changes, node, intent, deps.clock.monotonicMs());
    const context = { priority, owner: node, signal, timeoutMs, isNew };
    return await trackDescribe(deps, node, () => deps.cloud.tasks.settle(task, context));
  } catch (error) {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    // The cloud does not report the state of the task: try later.
    await deps.clock.sleep(DESCRIBE_RETRY_MS, signal);
    return { kind: 'pending' };
  }
}
