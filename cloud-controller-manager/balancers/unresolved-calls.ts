import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancerOutcome, LoadBalancerPort, LoadBalancerTask } from '../../cloud/load-balancers.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { OwnerMark } from './owner-mark.ts';

/** A call has its effect, and shows it, so much later than it was sent at most; and so old may an answer be. */
export const APPEARS_MS = 60_000;
/** A task takes seconds. One that has not ended after so long counts as over. */
const TASK_MS = 600_000;
/** How long a round asks for a task that an earlier one has waited for, and how long until the next round does. */
const ASK_MS = 8_000;
const ASK_AGAIN_MS = 20_000;
const SOON_MS = 2_000;
/** A task that has not ended after so long is reported. */
const SHOWN_MS = 60_000;

type CallDeps = {
  readonly cloud: { readonly loadBalancers: Pick<LoadBalancerPort, 'settle'> };
  readonly clock: Pick<Clock, 'monotonicMs'>;
};

/** Calls for the listeners of one owner. */
type Unresolved = {
  /** Until when those without an answer may have their effect; monotonic milliseconds. */
  readonly untilMs: number;
  /** Those that the cloud accepted, and may work on; since when, in monotonic milliseconds. */
  readonly tasks: readonly { readonly task: LoadBalancerTask; readonly sinceMs: number }[];
};

const NONE: Unresolved = { untilMs: Number.NEGATIVE_INFINITY, tasks: [] };

/**
 * Remembers the calls that may still make something on a load balancer, by the name of the owner's listeners: a load balancer
 * that stays is not left before. Of a former process the owner's mark tells whether there are any; where it does not, they
 * have the usual time from the start of this process, as the last of them was sent before.
 */
export class UnresolvedCalls {
  readonly #deps: CallDeps;
  readonly #formerUntilMs: number;
  /** Names of listeners for which no call of a former process is unresolved. */
  readonly #withoutFormer = new Set<string>();
  readonly #unresolved = new Map<string, Unresolved>();

  constructor(deps: CallDeps) {
    this.#deps = deps;
    this.#formerUntilMs = deps.clock.monotonicMs() + APPEARS_MS;
  }

  /**
   * Notes what an owner's mark tells of former processes: without a load balancer they sent nothing, and with a hash all was in
   * force. In a group the hash tells nothing: one member has it, and changes since may be in the mark of another. The finalizer
   * was written with a mark: without one, that was removed, and tells nothing.
   */
  see(listenerName: string, { serial, loadBalancerId, settled, grouped }: OwnerMark, hasFinalizer: boolean): void {
    if (serial === 0 && hasFinalizer) return;
    if (loadBalancerId === undefined || (settled !== undefined && grouped !== true)) this.begin(listenerName);
  }

  /** Notes that no former process sent anything for listeners. */
  begin(listenerName: string): void {
    if (this.#deps.clock.monotonicMs() < this.#formerUntilMs) this.#withoutFormer.add(listenerName);
    else this.#withoutFormer.clear();
  }

  /** Notes that a call that makes something failed; it may have made it all the same, unless the cloud refused it. */
  noteFailure(listenerName: string, error: unknown): void {
    if (!isCloudError(error) || error.retry === 'resolve') this.#noteNow(listenerName);
  }

  /** Waits for a task that makes something, and remembers one that has not ended. @throws CloudError */
  async settle(listenerName: string, task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome> {
    const { untilMs, tasks } = this.#of(listenerName);
    this.#set(listenerName, { untilMs, tasks: [...tasks, { task, sinceMs: this.#deps.clock.monotonicMs() }] });
    return await this.#ask(listenerName, task, context);
  }

  /** Reports whether something may still be made for listeners. */
  isUnresolved(listenerName: string): boolean {
    return this.#leftMs(listenerName) > 0;
  }

  /**
   * Asks for the tasks that have not ended, for a short time: a question that fails is asked again.
   * @returns in how many milliseconds to look at the load balancer again; infinite: there were none
   */
  async follow(listenerName: string, context: CallContext): Promise<number> {
    const { tasks } = this.#of(listenerName);
    const timeoutMs = Math.min(context.timeoutMs ?? ASK_MS, ASK_MS);
    for (const { task } of tasks)
      try {
        await this.#ask(listenerName, task, { ...context, timeoutMs });
      } catch (error) {
        if (!isCloudError(error)) throw error;
      }
    if (this.#of(listenerName).tasks.length > 0) return ASK_AGAIN_MS;
    // What they made is not seen yet.
    return tasks.length > 0 ? SOON_MS : Number.POSITIVE_INFINITY;
  }

  /**
   * Asks for the tasks that have not ended.
   * @returns in how many milliseconds to look at the load balancer again; 0: what was seen is all that is made
   */
  async resolve(listenerName: string, context: CallContext): Promise<number> {
    const followMs = await this.follow(listenerName, context);
    return followMs < Number.POSITIVE_INFINITY ? followMs : Math.min(this.#leftMs(listenerName), APPEARS_MS / 3);
  }

  /** Says which task has not ended for more than a minute, for people; undefined: none. */
  describeOverdue(listenerName: string): string | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    const overdue = this.#of(listenerName).tasks.find(({ sinceMs }) => nowMs - sinceMs >= SHOWN_MS);
    if (overdue === undefined) return undefined;
    const { action, taskId } = overdue.task;
    return `${action} (task ${taskId}) is not known to have ended for more than a minute; the load balancer is left when it has, or ten minutes after its start. It is looked at again by itself`;
  }

  async #ask(listenerName: string, task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome> {
    const outcome = await this.#deps.cloud.loadBalancers.settle(task, context).catch(lostOf);
    if (outcome.kind === 'pending') return outcome;
    const { untilMs, tasks } = this.#of(listenerName);
    this.#set(listenerName, { untilMs, tasks: tasks.filter((one) => one.task.taskId !== task.taskId) });
    if (outcome.kind === 'lost') this.#noteNow(listenerName);
    return outcome;
  }

  #leftMs(listenerName: string): number {
    const { untilMs, tasks } = this.#of(listenerName);
    if (tasks.length > 0) return Number.POSITIVE_INFINITY;
    const endMs = this.#withoutFormer.has(listenerName) ? untilMs : Math.max(untilMs, this.#formerUntilMs);
    return Math.max(0, endMs - this.#deps.clock.monotonicMs());
  }

  #noteNow(listenerName: string): void {
    const untilMs = this.#deps.clock.monotonicMs() + APPEARS_MS;
    this.#set(listenerName, { ...this.#of(listenerName), untilMs });
  }

  #of(listenerName: string): Unresolved {
    const { untilMs, tasks } = this.#unresolved.get(listenerName) ?? NONE;
    const nowMs = this.#deps.clock.monotonicMs();
    return { untilMs, tasks: tasks.filter(({ sinceMs }) => nowMs - sinceMs < TASK_MS) };
  }

  #set(listenerName: string, unresolved: Unresolved): void {
    this.#unresolved.set(listenerName, unresolved);
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [name, { untilMs }] of this.#unresolved)
      if (untilMs <= nowMs && this.#of(name).tasks.length === 0) this.#unresolved.delete(name);
  }
}

/** @throws the error, unless the cloud refuses to know the task */
function lostOf(error: unknown): LoadBalancerOutcome {
  const isRefused = isCloudError(error, 'never') && error.code.startsWith('InvalidParameter');
  if (isRefused || isCloudError(error, 'gone')) return { kind: 'lost' };
  throw error;
}
