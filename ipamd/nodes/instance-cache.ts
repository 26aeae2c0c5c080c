import type { CallContext, Cloud, Instance } from '../../cloud/cloud.ts';
import { instanceIdOf } from '../../cloud/provider-id.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import { type InstanceRecord, type Presence, presenceOf, recordDescription } from './decide-presence.ts';

/** Cache of the instances behind the nodes. */
export type InstanceCache = {
  /** Returns the record of an instance; undefined: never described. */
  find(instanceId: string): InstanceRecord | undefined;
  /** Returns the state of an instance; `unknown` also without an id. */
  presence(instanceId: string | undefined): Presence;
  /** Describes an instance that is not completely known; concurrent requests share a call. @throws CloudError */
  ensureDescribed(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Describes an instance again, known or not; concurrent requests share a call. @throws CloudError */
  describeAgain(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Describes all wanted instances periodically until aborted, and forgets the others. Never rejects. */
  run(requiredIds: () => Iterable<string>, signal: AbortSignal): Promise<void>;
  /** Calls the listener with the id of each instance whose record has changed. */
  subscribe(listener: (instanceId: string) => void): () => void;
};

/** Dependencies of the instance cache. */
type InstanceCacheDeps = Pick<Term, 'clock' | 'log' | 'metrics'> & {
  readonly config: Pick<IpamdConfig, 'stoppedInstanceGraceMs'>;
  readonly cloud: { readonly instances: Pick<Cloud['instances'], 'describe' | 'eniLimits'> };
};

const REFRESH_MS = 180_000;
/** An instance that was missing once is described again after this, not with the next refresh. */
const MISSING_RETRY_MS = 15_000;

/** Opens an instance cache. It has no timer except while `run` runs. */
export function openInstanceCache(deps: InstanceCacheDeps): InstanceCache {
  return new DescribedInstances(deps);
}

class DescribedInstances implements InstanceCache {
  readonly #deps: InstanceCacheDeps;
  readonly #records = new Map<string, InstanceRecord>();
  /** Last state that the listeners were notified of, by id: time alone can also change the state. */
  readonly #notified = new Map<string, string>();
  readonly #listeners = new Set<(instanceId: string) => void>();

  constructor(deps: InstanceCacheDeps) {
    this.#deps = deps;
  }

  find(instanceId: string): InstanceRecord | undefined {
    return this.#records.get(instanceId);
  }

  presence(instanceId: string | undefined): Presence {
    const record = instanceId === undefined ? undefined : this.#records.get(instanceId);
    return presenceOf(record, this.#deps.clock.monotonicMs(), this.#deps.config.stoppedInstanceGraceMs);
  }

  async ensureDescribed(instanceId: string, signal: AbortSignal): Promise<void> {
    if (!isInstanceId(instanceId)) return;
    const known = this.#records.get(instanceId);
    // An instance that was never described may be new: the cloud lists some late.
    const isOver = known?.instance !== undefined && this.presence(instanceId) === 'gone';
    if (known?.limits !== undefined || isOver) return;
    await this.#describe([instanceId], { priority: 'pod', owner: instanceId, signal });
  }

  async describeAgain(instanceId: string, signal: AbortSignal): Promise<void> {
    if (!isInstanceId(instanceId)) return;
    await this.#describe([instanceId], { priority: 'gc', owner: instanceId, signal });
  }

  async run(requiredIds: () => Iterable<string>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    // Joining nodes are described at once: the first refresh is for instances that change afterwards.
    let waitMs = REFRESH_MS;
    while (await slept(clock, waitMs, signal)) {
      const ids = new Set([...requiredIds()].filter(isInstanceId));
      this.#removeAllBut(ids);
      const missed = [...ids].filter((id) => this.#isMissedOnce(id));
      const isRetry = waitMs < REFRESH_MS && missed.length > 0;
      await this.#refresh(isRetry ? missed : [...ids], signal);
      const isAnyMissed = [...ids].some((id) => this.#isMissedOnce(id));
      waitMs = isAnyMissed ? MISSING_RETRY_MS : REFRESH_MS;
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
    const results = await Promise.allSettled(ids.map((id) => this.#describe([id], context)));
    if (signal.aborted) return;
    // The records stay: an instance is not deleted because the cloud does not answer.
    const failed = results.filter((result) => result.status === 'rejected');
    const [first] = failed;
    if (first !== undefined) {
      const counts = { instances: ids.length, failed: failed.length };
      this.#deps.log.warn('instances could not be described, will try again', { ...counts, error: first.reason });
    }
    this.#deps.metrics.instanceRefreshes.inc({ outcome: first === undefined ? 'done' : 'failed' });
  }

  async #describe(ids: readonly string[], context: CallContext): Promise<void> {
    const described = new Map(
      (await this.#deps.cloud.instances.describe(ids, context)).map((one) => [one.instanceId, one] as const),
    );
    for (const id of ids) if (!described.has(id)) this.#record(id, undefined);
    for (const instance of described.values()) {
      // Together with its limits: without them it would look unknown to the cloud. They are read each time: the cloud port caches
      // the cloud's own answer, and asks again while it only has the built-in table.
      this.#record(instance.instanceId, instance, await this.#deps.cloud.instances.eniLimits(instance, context));
    }
    for (const id of ids) this.#notify(id);
  }

  #record(id: string, instance: Instance | undefined, limits?: InstanceRecord['limits']): void {
    const record = recordDescription(this.#records.get(id), instance, this.#deps.clock.monotonicMs());
    this.#records.set(id, { ...record, ...(limits === undefined ? {} : { limits }) });
  }

  #notify(id: string): void {
    const { instance, limits } = this.#records.get(id) ?? {};
    const now = JSON.stringify([this.presence(id), instance, limits]);
    if (this.#notified.get(id) === now) return;
    this.#notified.set(id, now);
    for (const listener of this.#listeners) listener(id);
  }

  #removeAllBut(requiredIds: ReadonlySet<string>): void {
    for (const id of this.#records.keys()) {
      if (requiredIds.has(id)) continue;
      this.#records.delete(id);
      this.#notified.delete(id);
    }
  }
}

/**
 * Reports whether a text is an instance id. People may write anything into a status, and for one wrong id the cloud
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
