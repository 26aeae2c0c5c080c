import type { Clock } from '../../runtime/clock.ts';
import { batchesOf, IDS_PER_CALL } from '../batches.ts';
import type { CallContext, CallPriority } from '../cloud.ts';
import { type CloudError, isCloudError } from '../cloud-error.ts';
import { DEFAULT_TIMEOUT_MS, deadlineError } from './caller.ts';
import { SharedRun } from './shared-run.ts';
import { withTimeout } from './with-timeout.ts';

/** Describes objects by id in one call. */
type DescribeIds<T> = (ids: readonly string[], context: CallContext) => Promise<readonly T[]>;

/** The objects that were found, and the ids whose description failed. */
type Found<T> = { readonly objects: readonly T[]; readonly failures: ReadonlyMap<string, CloudError> };

type Gathering<T> = {
  readonly ids: Set<string>;
  priority: CallPriority;
  run: SharedRun<Found<T>> | undefined;
};

const RANK: Readonly<Record<CallPriority, number>> = { pod: 2, warm: 1, gc: 0 };
/**
 * Time for which ids are collected: enough for a burst of reconciles, and short beside the 20 ms that a call costs of
 * the rate.
 */
export const GATHER_MS = 20;

/** Collects ids that are requested at about the same time and describes many in one call. */
export class IdBatcher<T> {
  #clock: Clock;
  #idsOf: (object: T) => readonly string[];
  #describe: DescribeIds<T>;
  readonly #idsPerCall: number;
  readonly #gatherMs: (context: CallContext) => number;
  /** By how long they gather: who gathers for a moment does not join those who have time. */
  readonly #gatherings = new Map<number, Gathering<T>>();

  /**
   * `idsOf` returns the ids by which an object may have been requested: one, but for addresses. `gatherMs` says for how long
   * the ids of a call are collected; a few different times at most.
   */
  constructor(
    clock: Clock,
    idsOf: (object: T) => readonly string[],
    describe: DescribeIds<T>,
    idsPerCall: number = IDS_PER_CALL,
    gatherMs: (context: CallContext) => number = () => GATHER_MS,
  ) {
    this.#clock = clock;
    this.#idsOf = idsOf;
    this.#describe = describe;
    this.#idsPerCall = idsPerCall;
    this.#gatherMs = gatherMs;
  }

  /**
   * Resolves with the objects that exist, in no particular order. The cloud call began after this call.
   * @throws CloudError when one of these ids could not be described; ids of other callers in the same batch do not
   * matter
   */
  async get(ids: readonly string[], context: CallContext): Promise<readonly T[]> {
    if (ids.length === 0) return [];
    const gatherMs = this.#gatherMs(context);
    const found = this.#gatherings.get(gatherMs);
    const known = found?.run?.isAborted === true ? undefined : found;
    const gathering: Gathering<T> = known ?? { ids: new Set(), priority: context.priority, run: undefined };
    this.#gatherings.set(gatherMs, gathering);
    for (const id of ids) gathering.ids.add(id);
    // The batch gets the highest priority of its callers.
    if (RANK[context.priority] > RANK[gathering.priority]) gathering.priority = context.priority;
    gathering.run ??= new SharedRun((signal) =>
      this.#flush(gathering, gatherMs, { ...context, signal, timeoutMs: DEFAULT_TIMEOUT_MS }),
    );
    const { run } = gathering;
    const timeoutMs = context.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const reason = (): Error => deadlineError('Describe', timeoutMs);
    const described = await withTimeout(this.#clock, timeoutMs, context.signal, reason, (signal) => run.join(signal));
    const { objects, failures } = described;
    const failure = ids.map((id) => failures.get(id)).find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
    const requested = new Set(ids);
    return objects.filter((object) => this.#idsOf(object).some((id) => requested.has(id)));
  }

  /**
   * Describes at most a hundred ids at once, in requests that no other caller shares.
   * @throws CloudError when one of them could not be described
   */
  async getAlone(ids: readonly string[], context: CallContext): Promise<readonly T[]> {
    const { objects, failures } = await this.#describeAll(ids, context);
    for (const failure of failures.values()) throw failure;
    return objects;
  }

  async #flush(gathering: Gathering<T>, gatherMs: number, context: CallContext): Promise<Found<T>> {
    try {
      await this.#clock.sleep(gatherMs, context.signal);
    } finally {
      // Also when all callers gave up meanwhile: the next caller must not join an aborted batch.
      if (this.#gatherings.get(gatherMs) === gathering) this.#gatherings.delete(gatherMs);
    }
    const { priority } = gathering;
    const batches = batchesOf([...gathering.ids], this.#idsPerCall);
    const answers = await Promise.all(batches.map((batch) => this.#describeAll(batch, { ...context, priority })));
    return mergeFound(answers);
  }

  /**
   * Describes ids in one call, and splits the batch after a refusal. Some APIs omit an id that does not exist, some
   * refuse the whole request; which ones is not documented. All refuse a malformed id, as people may write them. A
   * refused batch is halved until those ids are alone.
   */
  async #describeAll(ids: readonly string[], context: CallContext): Promise<Found<T>> {
    try {
      return { objects: await this.#describe(ids, context), failures: new Map() };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      const isOfOne = error.retry === 'gone' || MALFORMED.test(error.code);
      if (isOfOne && ids.length > 1) {
        const half = Math.ceil(ids.length / 2);
        const halves = [ids.slice(0, half), ids.slice(half)];
        return mergeFound(await Promise.all(halves.map((part) => this.#describeAll(part, context))));
      }
      const failed = error.retry === 'gone' ? [] : ids;
      return { objects: [], failures: new Map(failed.map((id) => [id, error])) };
    }
  }
}

/** Such as InvalidInstanceId.Malformed and InvalidParameterValue.Malformed. */
const MALFORMED = /\.Malformed$/;

function mergeFound<T>(all: readonly Found<T>[]): Found<T> {
  return {
    objects: all.flatMap(({ objects }) => objects),
    failures: new Map(all.flatMap(({ failures }) => [...failures])),
  };
}
