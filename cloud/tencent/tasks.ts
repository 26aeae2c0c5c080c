import type { Clock } from '../../runtime/clock.ts';
import type { CallContext, CloudTask, Eip, Eni, TaskOutcome, TaskPort } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import { type GoalState, isEipGoal, judgeEipGoal, judgeEniGoal } from '../judge-task.ts';
import { type Caller, DEFAULT_TIMEOUT_MS } from './caller.ts';
import { decodeEipTask, decodeVpcTask } from './decode/others.ts';
import type { IdBatcher } from './id-batcher.ts';

/** What tasks are watched with. */
export type TaskDeps = {
  readonly clock: Clock;
  readonly call: Caller;
  readonly eniBatcher: IdBatcher<Eni>;
  readonly eipBatcher: IdBatcher<Eip>;
};

/**
 * All who wait look at the same moments, so that one request tells a hundred of them: five hundred ENIs that attach at
 * once cost five calls a second, where asking for each task by its id would cost five hundred.
 */
const LOOK_EACH_MS = 1_000;

/** Looks at an object that stands still before its task is asked for by id: a description may be older than the task. */
const STILL_LOOKS = 2;

/** Looks at an object on its way before its task is asked for by id all the same; doubles each time. */
const MOVING_LOOKS = 16;

/** Times that the cloud must know no such task before it is lost: a task may be written down later than its answer. */
const UNKNOWN_ANSWERS = 3;

/**
 * Makes the task part of the port. The description of the object decides; the task itself is asked for, by
 * DescribeVpcTaskResult or an EIP's DescribeTaskResult, when the description does not settle it.
 */
export function createTaskPort(deps: TaskDeps): TaskPort {
  return {
    settle: async (task, context) => {
      const endMs = deps.clock.monotonicMs() + (context.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      let stillLooks = 0;
      let unknownAnswers = 0;
      let askAtLook = MOVING_LOOKS;
      for (let look = 1; deps.clock.monotonicMs() < endMs; look++) {
        await deps.clock.sleep(untilNextLook(deps.clock, endMs), context.signal);
        const rest = { ...context, timeoutMs: Math.max(1, endMs - deps.clock.monotonicMs()) };
        const state = await lookAt(deps, task, rest);
        if (state === 'reached') return { kind: 'done' };
        stillLooks = state === 'still' ? stillLooks + 1 : 0;
        const isDue = look >= askAtLook;
        if (isDue) askAtLook = look * 2;
        if (!isDue && stillLooks < STILL_LOOKS) continue;
        const answer = await askFor(deps, task, rest);
        if (answer === 'unknown') unknownAnswers += 1;
        else if (answer.kind !== 'pending') return answer;
        if (unknownAnswers >= UNKNOWN_ANSWERS && state === 'still') return { kind: 'lost' };
      }
      return { kind: 'pending' };
    },
  };
}

/** Milliseconds until the next full second of this process, or the end if that comes first. */
function untilNextLook(clock: Clock, endMs: number): number {
  const nowMs = clock.monotonicMs();
  return Math.max(1, Math.min(endMs - nowMs, LOOK_EACH_MS - (nowMs % LOOK_EACH_MS)));
}

async function lookAt(deps: TaskDeps, task: CloudTask, context: CallContext): Promise<GoalState> {
  const { goal } = task;
  try {
    if (isEipGoal(goal)) return judgeEipGoal(goal, await deps.eipBatcher.get(goal.eipIds, context));
    const [eni] = await deps.eniBatcher.get([goal.eniId], context);
    return judgeEniGoal(goal, eni);
  } catch (error) {
    // A description that fails says nothing of the task; the next look may tell.
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return 'moving';
    throw error;
  }
}

async function askFor(deps: TaskDeps, task: CloudTask, context: CallContext): Promise<TaskOutcome | 'unknown'> {
  try {
    const { status, output } = isEipGoal(task.goal)
      ? decodeEipTask(await deps.call('DescribeTaskResult', { TaskId: Number(task.taskId) }, context))
      : decodeVpcTask(await deps.call('DescribeVpcTaskResult', { TaskId: task.taskId }, context));
    if (status === 'SUCCESS') return { kind: 'done' };
    if (status === 'FAILED') return { kind: 'failed', reason: output === '' ? `${task.action} failed` : output };
    return { kind: 'pending' };
  } catch (error) {
    if (isCloudError(error, 'gone')) return 'unknown';
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return { kind: 'pending' };
    throw error;
  }
}
