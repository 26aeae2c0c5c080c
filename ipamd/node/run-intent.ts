import type { CallContext, CallPriority, TaskOutcome } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { MUTATIONS } from '../../crd/intent.ts';
import type { CloudSight, Intent, IntentFailure, IntentOutcome, SeenEni } from '../nec/decision.ts';
import { type Judgement, judgeIntent, MOVING_CODE, NOT_MOVED_CODE } from '../nec/judge-intent.ts';
import { isSoundEni } from '../nec/seen-eni.ts';
import { findHeld } from './find-held.ts';
import { type Accepted, resultOf, sendCall, taskOf } from './make-call.ts';
import type { NodeDeps } from './node-deps.ts';
import {
  endProbes,
  exhausted,
  failureOf,
  type IntentCase,
  isRefusal,
  noteAccepted,
  noteDone,
  notingDescribe,
  pauseOf,
  refuse,
  TASK_CODE,
  UNSEEN_CODE,
} from './note-refusal.ts';

/** How long a call waits for its task before it is recorded as accepted. */
const SETTLE_MS = 15_000;
/** How long an accepted task is followed before the object is checked again. */
const FOLLOW_MS = 60_000;
/** After a failed task the description may lag. */
const LOOK_AGAIN_MS = 2_000;
const MOST_LOOKS = 15;
const LONGEST_LOOK_MS = 20_000;
/**
 * An unknown outcome is resolved at most so often; then a call that the description does not show as done counts as
 * refused.
 */
const MOST_TRIES = 6;

/**
 * Sends the call of an intent and waits, bounded, for its task. The intent must be recorded before. Returns the outcome
 * as data; throws only the signal's reason. Trips and resets breakers.
 */
export async function sendIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const { node, intent, status, priority } = one;
  const context = contextOf(one, priority, signal, intent.requestTimeoutSeconds * 1000);
  const early = await findHeld(deps, one, signal);
  if (early !== undefined) return refuse(deps, one, early);
  let accepted: Accepted;
  try {
    accepted = await sendCall(deps.cloud, intent, status, context);
  } catch (error) {
    return await failed(deps, one, signal, error);
  }
  noteAccepted(deps, one);
  const known: Intent = {
    ...intent,
    ...(accepted.eni === undefined ? {} : { eniID: accepted.eni.eniId }),
    ...(accepted.ips === undefined ? {} : { ips: accepted.ips }),
  };
  const eni = accepted.eni === undefined ? undefined : await seen(deps, one, accepted, signal);
  if (accepted.task === undefined) return await reached(deps, { ...one, intent: known }, signal, eni);
  const settled = await settle(deps, node, known, accepted.task.taskId, SETTLE_MS, priority, signal);
  if (settled.kind === 'pending') {
    const { taskId } = accepted.task;
    const brings = {
      ...(eni === undefined ? {} : { eni: { ...eni, ips: [] } }),
      ...(known.ips === undefined ? {} : { ips: known.ips }),
    };
    return { kind: 'accepted', taskId, ...brings };
  }
  return await judged(deps, { ...one, intent: known }, settled, signal, eni);
}

/** Follows the task of an accepted intent; returns the same outcome again while it still runs. */
export async function followIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  const { node, intent } = one;
  const taskId = intent.taskID ?? '';
  if (taskOf(intent) === undefined) return await resolvedOrUnclear(deps, one, signal);
  const settled = await settle(deps, node, intent, taskId, FOLLOW_MS, one.priority, signal);
  if (settled.kind === 'pending') return { kind: 'accepted', taskId };
  return await judged(deps, one, settled, signal, undefined);
}

/**
 * Resolves an intent without an answer by describing the cloud. `repeat`: it is not done and may be sent again. @throws
 * CloudError when the cloud cannot be described
 */
async function resolveIntent(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<Judgement> {
  const { intent, status } = one;
  const sight = await look(deps, one, signal);
  const judgement = judgeIntent(intent, sight, status);
  const last = intent.lastError;
  if (judgement !== 'repeat' && judgement.kind === 'refused' && judgement.error.code === NOT_MOVED_CODE) {
    return refuse(deps, one, last !== undefined && isRefusal(intent, last) ? last : judgement.error);
  }
  if (judgement !== 'repeat')
    return judgement.kind === 'refused' ? contradict(deps, one, judgement.error) : sound(judgement);
  if (last !== undefined && isRefusal(intent, last)) return refuse(deps, one, last);
  // With a ClientToken repeating is always safe, and giving up may leave an unknown ENI.
  const isGivenUp = !MUTATIONS[intent.action].takesClientToken && (intent.tries ?? 0) >= MOST_TRIES;
  return isGivenUp && last !== undefined ? refuse(deps, one, last) : 'repeat';
}

/** How long a call is blocked when object and cloud disagree about an ENI: asked again at once, it would fail again. */
const CONTRADICTED_MS = 30_000;

function contradict(deps: NodeDeps, one: IntentCase, failure: IntentFailure): IntentOutcome {
  deps.memory.askDescribe(one.node, `a call found the object wrong: ${failure.message}`);
  return refuse(deps, one, failure, CONTRADICTED_MS);
}

/**
 * Resolves an intent again and again until the cloud can be described and the ENI is settled. Throws only the signal's
 * reason.
 */
export async function resolveWhenStill(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<Judgement> {
  for (let looks = 0; ; looks++) {
    try {
      const judgement = await resolveIntent(deps, one, signal);
      if (judgement === 'repeat' || judgement.kind !== 'unclear') return judgement;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
    }
    await deps.clock.sleep(Math.min(LOOK_AGAIN_MS * (1 + looks), LONGEST_LOOK_MS), signal);
  }
}

/** Evaluates a call that failed while the signal is not aborted. */
async function failed(deps: NodeDeps, one: IntentCase, signal: AbortSignal, error: unknown): Promise<IntentOutcome> {
  signal.throwIfAborted();
  if (!isCloudError(error)) throw error;
  const failure = failureOf(error);
  switch (error.retry) {
    case 'resolve':
      endProbes(deps, one);
      return { kind: 'unclear', error: failure };
    case 'quota':
      return exhausted(deps, one, error);
    case 'never':
    case 'gone':
    case 'busy':
      // The ENI is in another state than the object contains: resolve by its actual state.
      if (one.intent.action !== 'CreateNetworkInterface') return await resolvedAfter(deps, one, failure, signal);
      return refuse(deps, one, failure, pauseOf(error));
    default:
      return refuse(deps, one, failure, pauseOf(error));
  }
}

/** Evaluates a settled task: its goal, or the description when the task did not reach it. */
async function judged(
  deps: NodeDeps,
  one: IntentCase,
  settled: TaskOutcome,
  signal: AbortSignal,
  eni: SeenEni | undefined,
): Promise<IntentOutcome> {
  switch (settled.kind) {
    case 'done':
      return await reached(deps, one, signal, eni);
    case 'failed':
      return await resolvedAfter(deps, one, { code: TASK_CODE.failed, message: settled.reason }, signal);
    default:
      return await resolvedAfter(deps, one, { code: TASK_CODE.lost, message: 'the cloud knows no such task' }, signal);
  }
}

/** Returns the result of a call that reached its goal, from the record or from a description. */
async function reached(
  deps: NodeDeps,
  one: IntentCase,
  signal: AbortSignal,
  eni: SeenEni | undefined,
): Promise<IntentOutcome> {
  const { intent } = one;
  noteDone(deps, one);
  const result = resultOf(intent);
  if (result !== undefined) return { kind: 'done', result };
  if (intent.action === 'CreateNetworkInterface' && eni !== undefined && isSoundEni(eni)) {
    return { kind: 'done', result: { action: intent.action, eni } };
  }
  return await resolvedOrUnclear(deps, one, signal);
}

async function resolvedOrUnclear(deps: NodeDeps, one: IntentCase, signal: AbortSignal): Promise<IntentOutcome> {
  return await resolvedAfter(deps, one, { code: UNSEEN_CODE, message: 'not seen done yet' }, signal);
}

/** Describes until the ENI is settled, and evaluates; refused with `failure` when the call is not done. */
async function resolvedAfter(
  deps: NodeDeps,
  one: IntentCase,
  failure: IntentFailure,
  signal: AbortSignal,
): Promise<IntentOutcome> {
  const intent: Intent = { ...one.intent, lastError: { ...failure, at: deps.ids.now() } };
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    try {
      const judgement = await resolveIntent(deps, { ...one, intent }, signal);
      if (judgement !== 'repeat' && judgement.kind !== 'unclear') return judgement;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
    }
    await deps.clock.sleep(LOOK_AGAIN_MS, signal);
  }
  return { kind: 'unclear', error: failure };
}

/** Turns a description that contradicts itself into an unclear outcome; the next description may be better. */
function sound(outcome: IntentOutcome): IntentOutcome {
  if (outcome.kind !== 'done' || !('eni' in outcome.result) || isSoundEni(outcome.result.eni)) return outcome;
  const { eniID } = outcome.result.eni;
  return { kind: 'unclear', error: { code: MOVING_CODE, message: `the description of ${eniID} is not whole` } };
}

async function look(
  deps: NodeDeps,
  { node, uid, intent, status }: IntentCase,
  signal: AbortSignal,
): Promise<CloudSight> {
  const isNew = intent.action === 'CreateNetworkInterface' && intent.eniID === undefined;
  const request = {
    uid,
    instanceId: intent.instanceID ?? status.instanceID,
    eniIds: [intent.eniID, intent.targetENIID].filter((id) => id !== undefined),
    breadth: isNew ? ('own' as const) : ('known' as const),
  };
  deps.observe.onDescribe?.({ node, why: intent.action });
  return await notingDescribe(deps, node, () => deps.eyes.look(request, { priority: 'warm', owner: node, signal }));
}

/** Converts the ENI in the answer of a creation; undefined when it lacks something that a description will have. */
async function seen(
  deps: NodeDeps,
  { node, uid, status }: IntentCase,
  { eni }: Accepted,
  signal: AbortSignal,
): Promise<SeenEni | undefined> {
  if (eni === undefined) return undefined;
  try {
    // The first addresses of a new ENI are usable once its task is done.
    const born = { ...eni, ips: eni.ips.map((ip) => ({ ...ip, state: 'AVAILABLE' as const })) };
    const owner = { uid, instanceId: status.instanceID };
    const sight = await deps.eyes.see(born, owner, { priority: 'warm', owner: node, signal });
    return isSoundEni(sight) ? sight : undefined;
  } catch (error) {
    if (isCloudError(error)) return undefined;
    throw error;
  }
}

async function settle(
  deps: NodeDeps,
  node: string,
  intent: Intent,
  taskId: string,
  timeoutMs: number,
  priority: CallPriority,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  const task = taskOf({ ...intent, taskID: taskId });
  if (task === undefined) return { kind: 'lost' };
  try {
    const context = { priority, owner: node, signal, timeoutMs };
    return await notingDescribe(deps, node, () => deps.cloud.tasks.settle(task, context));
  } catch (error) {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    // The cloud does not report the state of the task: try later.
    await deps.clock.sleep(LOOK_AGAIN_MS, signal);
    return { kind: 'pending' };
  }
}

function contextOf(one: IntentCase, priority: CallPriority, signal: AbortSignal, timeoutMs: number): CallContext {
  return { priority, owner: one.node, signal, timeoutMs };
}
