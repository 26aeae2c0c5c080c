import type { CallContext, Cloud, Instance } from '../../cloud/cloud.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { type InstanceRecord, type Presence, presenceOf, recordSight } from './decide-presence.ts';
import { instanceIdOf } from './provider-id.ts';

/** Cache of the instances behind the nodes. */
export type InstanceBook = {
  /** Returns the record of an instance; undefined: never described. */
  find(instanceId: string): InstanceRecord | undefined;
  /** Returns the state of an instance; `unknown` also without an id. */
  presence(instanceId: string | undefined): Presence;
  /** Describes an instance that is not completely known; concurrent requests share a call. @throws CloudError */
  look(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Describes all wanted instances periodically until aborted, and forgets the others. Never rejects. */
  run(wanted: () => Iterable<string>, signal: AbortSignal): Promise<void>;
  /** Calls the listener with the id of each instance whose record has changed. */
  subscribe(listener: (instanceId: string) => void): () => void;
};

/** Dependencies of the instance cache. */
type InstanceBookDeps = {
  readonly cloud: Pick<Cloud, 'instances'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long an instance is STOPPED until its ENIs may be detached. */
  readonly stoppedGraceMs: number;
  /** Default: three minutes. */
  readonly refreshMs?: number;
  readonly onRefresh?: (refresh: { readonly instances: number; readonly isFailed: boolean }) => void;
};

const REFRESH_MS = 180_000;
/** An instance that was missing once is described again after this, not with the next refresh. */
const SECOND_LOOK_MS = 15_000;

/** Opens an instance cache. It has no timer except while `run` runs. */
export function openInstanceBook(deps: InstanceBookDeps): InstanceBook {
  return new Book(deps);
}

class Book implements InstanceBook {
  readonly #deps: InstanceBookDeps;
  readonly #records = new Map<string, InstanceRecord>();
  /** Last state that the listeners were notified of, by id: time alone can also change the state. */
  readonly #told = new Map<string, string>();
  readonly #listeners = new Set<(instanceId: string) => void>();

  constructor(deps: InstanceBookDeps) {
    this.#deps = deps;
  }

  find(instanceId: string): InstanceRecord | undefined {
    return this.#records.get(instanceId);
  }

  presence(instanceId: string | undefined): Presence {
    const record = instanceId === undefined ? undefined : this.#records.get(instanceId);
    return presenceOf(record, this.#deps.clock.monotonicMs(), this.#deps.stoppedGraceMs);
  }

  async look(instanceId: string, signal: AbortSignal): Promise<void> {
    if (!isInstanceId(instanceId)) return;
    const known = this.#records.get(instanceId);
    // An instance that was never described may be new: the cloud lists some late.
    const isOver = known?.instance !== undefined && this.presence(instanceId) === 'gone';
    if (known?.limits !== undefined || isOver) return;
    await this.#describe([instanceId], { priority: 'pod', owner: instanceId, signal });
  }

  async run(wanted: () => Iterable<string>, signal: AbortSignal): Promise<void> {
    const { clock, refreshMs = REFRESH_MS } = this.#deps;
    // Joining nodes are described at once: the first refresh is for instances that change afterwards.
    let waitMs = refreshMs;
    while (await slept(clock, waitMs, signal)) {
      const ids = new Set([...wanted()].filter(isInstanceId));
      this.#forgetAllBut(ids);
      const missed = [...ids].filter((id) => this.#isMissedOnce(id));
      const isSecondLook = waitMs < refreshMs && missed.length > 0;
      await this.#refresh(isSecondLook ? missed : [...ids], signal);
      const isAnyMissed = [...ids].some((id) => this.#isMissedOnce(id));
      waitMs = isAnyMissed ? Math.min(SECOND_LOOK_MS, refreshMs) : refreshMs;
    }
  }

  subscribe(listener: (instanceId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #isMissedOnce(id: string): boolean {
    const missed = this.#records.get(id)?.missed ?? 0;
    return missed > 0 && this.presence(id) !== 'gone';
  }

  async #refresh(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const context: CallContext = { priority: 'gc', owner: 'instances', signal };
    // Each on its own, in requests that they share: an id that the cloud refuses must not make the others unknown.
    const looks = await Promise.allSettled(ids.map((id) => this.#describe([id], context)));
    if (signal.aborted) return;
    // The records stay: an instance is not deleted because the cloud does not answer.
    const failed = looks.filter((look) => look.status === 'rejected');
    const [first] = failed;
    if (first !== undefined) {
      const counts = { instances: ids.length, failed: failed.length };
      this.#deps.log.warn('instances could not be described, will try again', { ...counts, error: first.reason });
    }
    this.#deps.onRefresh?.({ instances: ids.length, isFailed: first !== undefined });
  }

  async #describe(ids: readonly string[], context: CallContext): Promise<void> {
    const seen = new Map(
      (await this.#deps.cloud.instances.describe(ids, context)).map((one) => [one.instanceId, one] as const),
    );
    for (const id of ids) {
      this.#records.set(id, recordSight(this.#records.get(id), seen.get(id), this.#deps.clock.monotonicMs()));
    }
    for (const instance of seen.values()) await this.#learnLimits(instance, context);
    for (const id of ids) this.#tell(id);
  }

  /**
   * Reads the limits each time: the cloud port caches the cloud's own answer, and asks again while it only has the
   * built-in table.
   */
  async #learnLimits(instance: Instance, context: CallContext): Promise<void> {
    const limits = await this.#deps.cloud.instances.eniLimits(instance, context);
    const record = this.#records.get(instance.instanceId);
    if (record !== undefined) this.#records.set(instance.instanceId, { ...record, limits });
  }

  #tell(id: string): void {
    const { instance, limits } = this.#records.get(id) ?? {};
    const now = JSON.stringify([this.presence(id), instance, limits]);
    if (this.#told.get(id) === now) return;
    this.#told.set(id, now);
    for (const listener of this.#listeners) listener(id);
  }

  #forgetAllBut(wanted: ReadonlySet<string>): void {
    for (const id of this.#records.keys()) {
      if (wanted.has(id)) continue;
      this.#records.delete(id);
      this.#told.delete(id);
    }
  }
}

/**
 * Tells whether a text is an instance id. People may write anything into a status, and for one wrong id the cloud
 * refuses the whole request.
 */
function isInstanceId(text: string): boolean {
  return instanceIdOf(text) === text;
}

/** Returns false once aborted. */
async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal);
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
