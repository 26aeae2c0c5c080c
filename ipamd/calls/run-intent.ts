import { classifyError } from '../../cloud/classify-error.ts';
import type { CallContext, CallPriority, CloudTask, TaskOutcome } from '../../cloud/cloud.ts';
import { DEADLINE_CODE, isCloudError } from '../../cloud/cloud-error.ts';
import { MUTATIONS } from '../../crd/intent.ts';
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
import type { NodeDeps } from './node-deps.ts';
import { MAX_DESCRIPTION_AGE_MS } from './node-memory.ts';
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

/**
 * Sends the call of an intent and waits, bounded, for its task. The intent must be recorded before. Returns the outcome
 * as data; throws only the signal's reason. Trips and resets breakers.
 */
export async function sendIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const { node, intent, status, priority } = one;
  const context = contextOf(one, priority, signal, intent.requestTimeoutSeconds * 1000);
  const notReleased = await checkSourceReleased(deps, one, signal);
  if (notReleased !== undefined) return refuse(deps, one, notReleased);
  let accepted: Accepted;
  try {
    accepted = await sendCall(deps.cloud, intent, status, context);
  } catch (error) {
    return await handleCallError(deps, one, signal, error);
  }
  noteAccepted(deps, one);
  const known: Intent = {
    ...intent,
    ...(accepted.eni === undefined ? {} : { eniID: accepted.eni.eniId }),
    ...(accepted.ips === undefined ? {} : { ips: accepted.ips }),
  };
  const eni = accepted.eni === undefined ? undefined : await observeCreated(deps, one, accepted, signal);
  if (accepted.task === undefined) return await completeCall(deps, { ...one, intent: known }, signal, eni);
  const settled = await settle(deps, node, accepted.task, SETTLE_MS, priority, signal);
  if (settled.kind === 'pending') {
    const { taskId } = accepted.task;
    const expected = {
      ...(eni === undefined ? {} : { eni: { ...eni, ips: [] } }),
      ...(known.ips === undefined ? {} : { ips: known.ips }),
    };
    return { kind: 'accepted', taskId, ...expected };
  }
  return await evaluateTask(deps, { ...one, intent: { ...known, taskID: accepted.task.taskId } }, settled, signal, eni);
}

/** Follows the task of an accepted intent; returns the same outcome again while it still runs. */
export async function followIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const task = taskOf(one.intent);
  if (task === undefined) return await resolveUnconfirmed(deps, one, signal);
  const settled = await settle(deps, one.node, task, FOLLOW_MS, one.priority, signal);
  if (settled.kind === 'pending') return { kind: 'accepted', taskId: task.taskId };
  return await evaluateTask(deps, one, settled, signal, undefined);
}

/**
 * Resolves an intent without an answer by describing the cloud. `repeat`: it is not done and may be sent again. An ENI
 * that is missing counts as gone, whatever that means for the call, when the description `before` lacked it too and no
 * description can be older than the ENI, or when the cloud refused the call for that.
 * @throws CloudError when the cloud cannot be described
 */
async function resolveIntent(
  deps: NodeDeps,
  one: IntentCase,
  before: IntentEvaluation | undefined,
  signal: AbortSignal,
): Promise<IntentEvaluation> {
  const { intent, status } = one;
  const snapshot = await observeCloud(deps, one, signal);
  const memory = deps.memory.of(one.node);
  const removedIps = new Set(memory.removedIpsMs.keys());
  const evaluation = evaluateIntent(intent, snapshot, status, removedIps);
  const last = intent.lastError;
  const missing = findMissing(intent, snapshot);
  const sinceMs = memory.eniSinceMs.get(missing ?? '') ?? Number.NEGATIVE_INFINITY;
  const isYoung = deps.clock.monotonicMs() - sinceMs <= MAX_DESCRIPTION_AGE_MS;
  const isSure = (isMissingEni(before) && !isYoung) || (last !== undefined && isRefusedAsGone(intent, last));
  if (missing !== undefined && !isSure)
    return { kind: 'unclear', error: { code: ENI_GONE_CODE, message: `no description shows ${missing}` } };
  if (evaluation !== 'repeat' && evaluation.kind === 'refused' && evaluation.error.code === NOT_MOVED_CODE) {
    return refuse(deps, one, last !== undefined && isRefusal(intent, last) ? last : evaluation.error);
  }
  if (evaluation !== 'repeat' && evaluation.kind === 'refused') return refuseContradicted(deps, one, evaluation.error);
  if (evaluation !== 'repeat') {
    const sound = unclearIfUnsound(evaluation);
    if (sound.kind === 'done') noteDone(deps, one);
    return sound;
  }
  if (last !== undefined && isRefusal(intent, last)) return refuse(deps, one, last);
  // With a ClientToken repeating is always safe, and giving up may leave an unknown ENI. An attachment creates nothing. A deletion is
  // given up, though repeating is safe: then the node says that the cloud refuses it, and it is decided again.
  const mayGiveUp = intent.action === 'AttachNetworkInterface' || !MUTATIONS[intent.action].takesClientToken;
  const isGivenUp = mayGiveUp && (intent.tries ?? 1) >= MAX_TRIES;
  return isGivenUp && last !== undefined ? refuse(deps, one, last) : 'repeat';
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

/** How long a call is blocked when object and cloud disagree about an ENI: asked again at once, it would fail again. */
const CONTRADICTED_MS = 30_000;

function refuseContradicted(deps: NodeDeps, one: IntentCase, failure: IntentFailure): IntentOutcome {
  deps.memory.requestDescribe(one.node, `a call contradicts the object: ${failure.message}`);
  return refuse(deps, one, failure, CONTRADICTED_MS);
}

/**
 * Resolves an intent again and again until the cloud can be described and the ENI is at rest. Throws only the signal's
 * reason.
 */
export async function resolveUntilKnown(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
): Promise<IntentEvaluation> {
  let evaluation: IntentEvaluation | undefined;
  for (let attempt = 0; ; attempt++) {
    try {
      evaluation = await resolveIntent(deps, one, evaluation, signal);
      if (evaluation === 'repeat' || evaluation.kind !== 'unclear') return evaluation;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
    }
    await deps.clock.sleep(Math.min(DESCRIBE_RETRY_MS * (1 + attempt), MAX_DESCRIBE_PAUSE_MS), signal);
  }
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
  switch (error.retry) {
    case 'resolve':
      endProbes(deps, one);
      return { kind: 'unclear', error: failure };
    case 'quota':
      return refuseExhausted(deps, one, error);
    case 'never':
    case 'gone':
    case 'busy':
      // The ENI is in another state than the object contains: resolve by its actual state.
      if (one.intent.action !== 'CreateNetworkInterface') return await resolveAfterFailure(deps, one, failure, signal);
      return refuse(deps, one, failure, pauseOf(error));
    default:
      return refuse(deps, one, failure, pauseOf(error));
  }
}

/** Evaluates a settled task: its goal, or the description when the task did not reach it. */
async function evaluateTask(
  deps: NodeDeps,
  one: IntentCase,
  settled: TaskOutcome,
  signal: AbortSignal,
  eni: ObservedEni | undefined,
): Promise<IntentOutcome> {
  // A task of the VPC has the RequestId of its call.
  const requestId = one.intent.taskID ?? '';
  switch (settled.kind) {
    case 'done':
      // The cloud may have answered a token that it knew, with the success of a call whose effect is undone since.
      if (settled.isUnseen === true && MUTATIONS[one.intent.action].takesClientToken)
        return await resolveUnconfirmed(deps, one, signal);
      return await completeCall(deps, one, signal, eni);
    case 'failed':
      return await resolveAfterFailure(
        deps,
        one,
        { code: TASK_CODE.failed, message: settled.reason, requestId },
        signal,
      );
    default:
      return await resolveAfterFailure(
        deps,
        one,
        { code: TASK_CODE.lost, message: 'the cloud knows no such task' },
        signal,
      );
  }
}

/** Returns the result of a call that reached its goal, from the record or from a description. */
async function completeCall(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
  eni: ObservedEni | undefined,
): Promise<IntentOutcome> {
  const { intent } = one;
  noteDone(deps, one);
  const result = resultOf(intent);
  if (result !== undefined) return { kind: 'done', result };
  if (intent.action === 'CreateNetworkInterface' && eni !== undefined && isValidEni(eni)) {
    return { kind: 'done', result: { action: intent.action, eni } };
  }
  return await resolveUnconfirmed(deps, one, signal);
}

async function resolveUnconfirmed(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  return await resolveAfterFailure(deps, one, { code: UNCONFIRMED_CODE, message: 'not confirmed yet' }, signal);
}

/**
 * Describes until the ENI is at rest, and evaluates; refused with `failure` when the call is not done. So is one that the
 * cloud has done by its own account, and that no description shows: with its token it would be answered the same again.
 */
async function resolveAfterFailure(
  deps: NodeDeps,
  one: IntentCase,
  failure: IntentFailure,
  signal: AbortSignal,
): Promise<IntentOutcome> {
  const intent: Intent = { ...one.intent, lastError: { ...failure, at: deps.ids.now() } };
  let evaluation: IntentEvaluation | undefined;
  let undone = 0;
  for (let attempt = 0; attempt < MAX_DESCRIBES; attempt++) {
    try {
      evaluation = await resolveIntent(deps, { ...one, intent }, evaluation, signal);
      if (evaluation !== 'repeat' && evaluation.kind !== 'unclear') return evaluation;
      if (evaluation === 'repeat') undone += 1;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
    }
    await deps.clock.sleep(DESCRIBE_RETRY_MS, signal);
  }
  const isUndone = failure.code === UNCONFIRMED_CODE && undone === MAX_DESCRIBES && taskOf(one.intent) !== undefined;
  if (!isUndone) return { kind: 'unclear', error: failure };
  deps.memory.requestDescribe(one.node, 'the cloud calls a call done that no description shows');
  return refuse(deps, one, { ...failure, message: 'the cloud calls it done, and no description shows it' });
}

/** Turns a description that contradicts itself into an unclear outcome; the next description may be better. */
function unclearIfUnsound(outcome: IntentOutcome): IntentOutcome {
  if (outcome.kind !== 'done' || !('eni' in outcome.result) || isValidEni(outcome.result.eni)) return outcome;
  const { eniID } = outcome.result.eni;
  return { kind: 'unclear', error: { code: MOVING_CODE, message: `the description of ${eniID} is incomplete` } };
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
  { eni }: Accepted,
  signal: AbortSignal,
): Promise<ObservedEni | undefined> {
  if (eni === undefined) return undefined;
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
  node: string,
  task: CloudTask,
  timeoutMs: number,
  priority: CallPriority,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  try {
    const context = { priority, owner: node, signal, timeoutMs };
    return await trackDescribe(deps, node, () => deps.cloud.tasks.settle(task, context));
  } catch (error) {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    // The cloud does not report the state of the task: try later.
    await deps.clock.sleep(DESCRIBE_RETRY_MS, signal);
    return { kind: 'pending' };
  }
}

function contextOf(one: IntentCase, priority: CallPriority, signal: AbortSignal, timeoutMs: number): CallContext {
  return { priority, owner: one.node, signal, timeoutMs };
}
