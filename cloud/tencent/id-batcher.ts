import type { Clock } from '../../runtime/clock.ts';
import { batchesOf, IDS_PER_CALL } from '../batches.ts';
import type { CallContext, CallPriority } from '../cloud.ts';
import { type CloudError, isCloudError } from '../cloud-error.ts';
import { DEFAULT_TIMEOUT_MS, deadlineError } from './caller.ts';
import { SharedRun } from './shared-run.ts';
import { withTimeout } from './with-timeout.ts';

/** Describes objects by id in one call. */
export type DescribeIds<T> = (ids: readonly string[], context: CallContext) => Promise<readonly T[]>;

/** What was found, and of which ids nothing could be found out. */
type Found<T> = { readonly objects: readonly T[]; readonly failures: ReadonlyMap<string, CloudError> };

type Gathering<T> = {
  readonly ids: Set<string>;
  priority: CallPriority;
  run: SharedRun<Found<T>> | undefined;
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

  /**
   * Resolves with the objects that exist, in no particular order. The call that tells of them began after this one.
   * @throws CloudError when nothing is found out of one of these ids; of others that are asked for with them it may be
   */
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
    const found = await withTimeout(this.#clock, timeoutMs, context.signal, late, (signal) => run.join(signal));
    const { objects, failures } = found;
    const failure = ids.map((id) => failures.get(id)).find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
    const wanted = new Set(ids);
    return objects.filter((object) => wanted.has(this.#idOf(object)));
  }

  async #flush(gathering: Gathering<T>, context: CallContext): Promise<Found<T>> {
    try {
      await this.#clock.sleep(GATHER_MS, context.signal);
    } finally {
      // Also when everybody left meanwhile: the next to come must not join what is aborted.
      if (this.#gathering === gathering) this.#gathering = undefined;
    }
    const { priority } = gathering;
    const batches = batchesOf([...gathering.ids], IDS_PER_CALL);
    const answers = await Promise.all(batches.map((batch) => this.#describeAll(batch, { ...context, priority })));
    return together(answers);
  }

  /**
   * Some APIs leave out an id that does not exist, some refuse the whole request for it, and which do is not written
   * down. All refuse one for an id that is malformed, as people write them. Refused, a batch is halved until those ids
   * stand alone.
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
        return together(await Promise.all(halves.map((part) => this.#describeAll(part, context))));
      }
      const failed = error.retry === 'gone' ? [] : ids;
      return { objects: [], failures: new Map(failed.map((id) => [id, error])) };
    }
  }
}

/** InvalidInstanceId.Malformed, InvalidParameterValue.Malformed, … */
const MALFORMED = /\.Malformed$/;

function together<T>(all: readonly Found<T>[]): Found<T> {
  return {
    objects: all.flatMap(({ objects }) => objects),
    failures: new Map(all.flatMap(({ failures }) => [...failures])),
  };
}
