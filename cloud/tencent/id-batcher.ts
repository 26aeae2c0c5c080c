import type { Clock } from '../../runtime/clock.ts';
import { batchesOf, IDS_PER_CALL } from '../batches.ts';
import type { CallContext, CallPriority } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import { DEFAULT_TIMEOUT_MS, deadlineError } from './caller.ts';
import { SharedRun } from './shared-run.ts';
import { withTimeout } from './with-timeout.ts';

/** Describes objects by id in one call. */
export type DescribeIds<T> = (ids: readonly string[], context: CallContext) => Promise<readonly T[]>;

type Gathering<T> = {
  readonly ids: Set<string>;
  priority: CallPriority;
  run: SharedRun<readonly T[]> | undefined;
};

const RANK: Readonly<Record<CallPriority, number>> = { pod: 2, warm: 1, gc: 0 };
/** Long enough for a burst of reconciles to gather, short beside the 20 ms that a call costs of the rate. */
const GATHER_MS = 20;

/** Gathers ids that are asked for at about the same time and describes them a hundred a call. */
export class IdBatcher<T> {
  #clock: Clock;
  #idOf: (object: T) => string;
  #describe: DescribeIds<T>;
  #gathering: Gathering<T> | undefined;

  constructor(clock: Clock, idOf: (object: T) => string, describe: DescribeIds<T>) {
    this.#clock = clock;
    this.#idOf = idOf;
    this.#describe = describe;
  }

  /** Resolves with the objects that exist, in no particular order. The call that tells of them began after this one. */
  async get(ids: readonly string[], context: CallContext): Promise<readonly T[]> {
    if (ids.length === 0) return [];
    const known = this.#gathering?.run?.isAborted === true ? undefined : this.#gathering;
    const gathering: Gathering<T> = known ?? { ids: new Set(), priority: context.priority, run: undefined };
    this.#gathering = gathering;
    for (const id of ids) gathering.ids.add(id);
    // The batch goes with the most urgent of those who wait for it.
    if (RANK[context.priority] > RANK[gathering.priority]) gathering.priority = context.priority;
    gathering.run ??= new SharedRun((signal) =>
      this.#flush(gathering, { ...context, signal, timeoutMs: DEFAULT_TIMEOUT_MS }),
    );
    const { run } = gathering;
    const timeoutMs = context.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const late = (): Error => deadlineError('Describe', timeoutMs);
    const objects = await withTimeout(this.#clock, timeoutMs, context.signal, late, (signal) => run.join(signal));
    const wanted = new Set(ids);
    return objects.filter((object) => wanted.has(this.#idOf(object)));
  }

  async #flush(gathering: Gathering<T>, context: CallContext): Promise<readonly T[]> {
    try {
      await this.#clock.sleep(GATHER_MS, context.signal);
    } finally {
      // Also when everybody left meanwhile: the next to come must not join what is aborted.
      if (this.#gathering === gathering) this.#gathering = undefined;
    }
    const { priority } = gathering;
    const batches = batchesOf([...gathering.ids], IDS_PER_CALL);
    const answers = await Promise.all(batches.map((batch) => this.#describeAll(batch, { ...context, priority })));
    return answers.flat();
  }

  /**
   * Some APIs leave out an id that does not exist, some refuse the whole request for it, and which do is not written
   * down. Refused, a batch is halved until the missing ids stand alone.
   */
  async #describeAll(ids: readonly string[], context: CallContext): Promise<readonly T[]> {
    try {
      return await this.#describe(ids, context);
    } catch (error) {
      if (!isCloudError(error, 'gone')) throw error;
      if (ids.length === 1) return [];
      const half = Math.ceil(ids.length / 2);
      const halves = [ids.slice(0, half), ids.slice(half)];
      return (await Promise.all(halves.map((part) => this.#describeAll(part, context)))).flat();
    }
  }
}
