import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { LoadBalancerOutcome, LoadBalancerPort, LoadBalancerTask } from '../../cloud/load-balancers.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { OwnerMark } from './owner-mark.ts';

/** A call without an answer has its effect, and shows it, so much later at most. */
export const APPEARS_MS = 60_000;
const SOON_MS = 2_000;

type CallDeps = {
  readonly cloud: { readonly loadBalancers: Pick<LoadBalancerPort, 'settle'> };
  readonly clock: Pick<Clock, 'monotonicMs'>;
};

/** Calls for the listeners of one owner. */
type Unresolved = {
  /** Until when those without an answer may have their effect; monotonic milliseconds. */
  readonly untilMs: number;
  /** Those that the cloud accepted, and may work on. */
  readonly tasks: readonly LoadBalancerTask[];
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
  }

  /** Notes that a call that makes something failed; it may have made it all the same, unless the cloud refused it. */
  noteFailure(listenerName: string, error: unknown): void {
    if (!isCloudError(error) || error.retry === 'resolve') this.#noteNow(listenerName);
  }

  /** Waits for a task that makes something, and remembers one that has not ended. @throws CloudError */
  async settle(listenerName: string, task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome> {
    const setTask = (...added: readonly LoadBalancerTask[]): void => {
      const { untilMs, tasks } = this.#of(listenerName);
      this.#set(listenerName, { untilMs, tasks: [...tasks.filter(({ taskId }) => taskId !== task.taskId), ...added] });
    };
    setTask(task);
    const outcome = await this.#deps.cloud.loadBalancers.settle(task, context);
    if (outcome.kind === 'pending') return outcome;
    setTask();
    if (outcome.kind === 'lost') this.#noteNow(listenerName);
    return outcome;
  }

  /** Tells whether something may still be made for listeners. */
  isUnresolved(listenerName: string): boolean {
    return this.#leftMs(listenerName) > 0;
  }

  /**
   * Waits for the tasks that have not ended.
   * @returns in how many milliseconds to look at the load balancer again; 0: what was seen is all that is made. @throws CloudError
   */
  async resolve(listenerName: string, context: CallContext): Promise<number> {
    const { tasks } = this.#of(listenerName);
    for (const task of tasks) await this.settle(listenerName, task, context);
    // What they made is not seen yet.
    return tasks.length > 0 ? SOON_MS : Math.min(this.#leftMs(listenerName), APPEARS_MS / 3);
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
    return this.#unresolved.get(listenerName) ?? NONE;
  }

  #set(listenerName: string, unresolved: Unresolved): void {
    this.#unresolved.set(listenerName, unresolved);
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [name, { untilMs, tasks }] of this.#unresolved)
      if (tasks.length === 0 && untilMs <= nowMs) this.#unresolved.delete(name);
  }
}
