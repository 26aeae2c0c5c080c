import type { Clock } from '../../runtime/clock.ts';
import { IDS_PER_CALL } from '../batches.ts';
import type { CallContext, CloudTask, Eip, Eni, TaskOutcome, TaskPort } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import { evaluateEipGoal, evaluateEniGoal, type GoalState, isEipGoal } from '../evaluate-goal.ts';
import { type Caller, DEFAULT_TIMEOUT_MS } from './caller.ts';
import { decodeEipTask, decodeVpcTask } from './decode/others.ts';
import type { IdBatcher } from './id-batcher.ts';

/** Dependencies of the task part. */
type TaskDeps = {
  readonly clock: Clock;
  readonly call: Caller;
  readonly eniBatcher: IdBatcher<Eni>;
  readonly eipBatcher: IdBatcher<Eip>;
  /** Whether calls are queued: then the checks of tasks are less frequent, to leave the rate to those calls. */
  readonly isBusy: () => boolean;
};

/**
 * Intervals of the checks. All tasks are checked at the same moments, so that one request describes a hundred objects.
 * While no calls are queued the checks are frequent, because a Pod may wait. While calls are queued they take of the rate
 * what those could have: a second apart, and three where one request does not describe all. Tasks that came at different
 * times share moments, as one interval is a multiple of the other.
 */
const CHECK_INTERVAL_MS = { idle: 250, busy: 1_000, mostBusy: 3_000 } as const;

/**
 * How long an object shows no transition before its task is queried by id: a description may be older than the task.
 */
const STILL_MS = 1_500;

/** How long an object is in transition before its task is queried by id all the same; doubles each time. */
const MOVING_MS = 16_000;

/** Least interval between two queries of one task. */
const QUERY_INTERVAL_MS = 1_000;

/**
 * How many times the cloud must not know a task before it counts as lost: a task may be registered later than its
 * answer.
 */
const UNKNOWN_ANSWERS = 3;

/**
 * Creates the task part of the port. The description of the object decides. When it does not suffice, the task itself
 * is queried, by DescribeVpcTaskResult or, for an EIP, DescribeTaskResult.
 */
export function createTaskPort(deps: TaskDeps): TaskPort {
  let followed = 0;
  const follow: TaskPort['settle'] = async (task, context) => {
    const { clock } = deps;
    const startMs = clock.monotonicMs();
    const endMs = startMs + (context.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const schedule = new QuerySchedule(startMs);
    let unknownAnswers = 0;
    let hasBeenMissing = false;
    while (clock.monotonicMs() < endMs) {
      await clock.sleep(untilNextCheck(deps, followed, endMs), context.signal);
      const rest = { ...context, timeoutMs: Math.max(1, endMs - clock.monotonicMs()) };
      const state = await checkGoal(deps, task, rest);
      const isReached = state === 'reached';
      // An address that moves back, or an ENI that is attached again, was there a moment ago: an old description shows that.
      const mayBeOld = context.isNew !== true && task.goal.kind !== 'created' && !hasBeenMissing;
      if (isReached && !mayBeOld) return { kind: 'done' };
      hasBeenMissing ||= !isReached;
      if (!schedule.isDue(state, clock.monotonicMs())) continue;
      const asked = queryTask(deps, task, rest);
      // Who may not ask believes the description.
      const answer = await (isReached ? asked.catch(unknownIfRefused) : asked);
      if (answer === 'unknown') unknownAnswers += 1;
      else if (answer.kind !== 'pending') return isReached && answer.kind === 'done' ? { kind: 'done' } : answer;
      if (unknownAnswers < UNKNOWN_ANSWERS) continue;
      if (isReached) return { kind: 'done' };
      if (state === 'still') return { kind: 'lost' };
    }
    return { kind: 'pending' };
  };
  return {
    settle: async (task, context) => {
      followed += 1;
      try {
        return await follow(task, context);
      } finally {
        followed -= 1;
      }
    },
  };
}

/** Decides at each check whether the task is to be queried by its id. */
class QuerySchedule {
  #startMs: number;
  #movingAtMs: number;
  #stillSinceMs: number | undefined;
  #queriedMs = Number.NEGATIVE_INFINITY;

  constructor(startMs: number) {
    this.#startMs = startMs;
    this.#movingAtMs = startMs + MOVING_MS;
  }

  isDue(state: GoalState, nowMs: number): boolean {
    this.#stillSinceMs = state === 'still' ? (this.#stillSinceMs ?? nowMs) : undefined;
    const isStill = this.#stillSinceMs !== undefined && nowMs - this.#stillSinceMs >= STILL_MS;
    const isLong = nowMs >= this.#movingAtMs;
    if (isLong) this.#movingAtMs = this.#startMs + 2 * (nowMs - this.#startMs);
    if ((state !== 'reached' && !isStill && !isLong) || nowMs - this.#queriedMs < QUERY_INTERVAL_MS) return false;
    this.#queriedMs = nowMs;
    return true;
  }
}

/** Returns the milliseconds until the next common check of this process, or until the end if that is earlier. */
function untilNextCheck({ clock, isBusy }: TaskDeps, followed: number, endMs: number): number {
  const { idle, busy, mostBusy } = CHECK_INTERVAL_MS;
  const eachMs = isBusy() ? (followed > IDS_PER_CALL ? mostBusy : busy) : idle;
  const nowMs = clock.monotonicMs();
  return Math.max(1, Math.min(endMs - nowMs, eachMs - (nowMs % eachMs)));
}

async function checkGoal(deps: TaskDeps, task: CloudTask, context: CallContext): Promise<GoalState> {
  const { goal } = task;
  try {
    if (isEipGoal(goal)) return evaluateEipGoal(goal, await deps.eipBatcher.get(goal.eipIds, context));
    const [eni] = await deps.eniBatcher.get([goal.eniId], context);
    return evaluateEniGoal(goal, eni);
  } catch (error) {
    // A failed description does not concern the task; the next check may succeed.
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return 'moving';
    throw error;
  }
}

async function queryTask(deps: TaskDeps, task: CloudTask, context: CallContext): Promise<TaskOutcome | 'unknown'> {
  try {
    const { status, output } = isEipGoal(task.goal)
      ? decodeEipTask(await deps.call('DescribeTaskResult', { TaskId: Number(task.taskId) }, context))
      : decodeVpcTask(await deps.call('DescribeVpcTaskResult', { TaskId: task.taskId }, context));
    if (status === 'SUCCESS') return { kind: 'done', isUnseen: true };
    if (status === 'FAILED') return { kind: 'failed', reason: output === '' ? `${task.action} failed` : output };
    return { kind: 'pending' };
  } catch (error) {
    if (isCloudError(error, 'gone')) return 'unknown';
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return { kind: 'pending' };
    throw error;
  }
}

function unknownIfRefused(error: unknown): 'unknown' {
  if (!isCloudError(error)) throw error;
  return 'unknown';
}
