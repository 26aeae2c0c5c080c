import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { CallContext } from './cloud.ts';
import { isCloudError } from './cloud-error.ts';

/**
 * One kind of object that we make in the cloud, as it is swept for orphans. Caches are read by `ownerCheck` alone, so the last
 * check before a removal applies the same test as the list did.
 */
export type OrphanKind<T> = {
  /** Logged, as a warning, when a sweep comes to nothing. */
  readonly skipMessage: string;
  readonly idOf: (one: T) => string;
  /** Time of creation by the cloud, milliseconds since the epoch; 0: unknown. Absent: objects may be orphans at any age. */
  readonly createdAtMs?: (one: T) => number;
  /** Lists all objects that may be ours. @throws CloudError */
  readonly list: (context: CallContext) => Promise<readonly T[] | Exclude<SweepSkip, 'SweepFailed'>>;
  /** Reports whether we made it for this cluster: by a tag that no other program sets. */
  readonly isOurs: (one: T) => boolean;
  /** Returns what tells whether something has an owner now, or may get one; undefined: owners are not known. */
  readonly ownerCheck: () => ((one: T) => boolean) | undefined;
  /** Most removals of a sweep that are tried; read before each. */
  readonly limit: () => number;
  /** Returns which of orphans that were found together are tried last, because they may have to stay. Absent: none. */
  readonly isLast?: (one: T) => boolean;
  /** Returns why an orphan stays, as the list shows it; such ones use up no limit. */
  readonly whyKept?: (one: T) => string | undefined;
  /**
   * Reads an orphan once more, and its owner from the API server; undefined: it is gone, or has an owner. What cannot be read
   * is `failed`, and is tried at the next sweep.
   */
  readonly lookAgain: (one: T, context: CallContext) => Promise<T | undefined>;
  /** Removes an orphan. @throws CloudError; `gone` is a success */
  readonly remove: (one: T, context: CallContext) => Promise<OrphanOutcome>;
  /** Reports what became of an orphan. */
  readonly report: (one: T, outcome: OrphanOutcome) => void;
  /** Reports orphans that are too many to be plausible; none of them is removed. Absent: any number is plausible. */
  readonly reportTooMany?: ((orphans: readonly T[], ownCount: number) => void) | undefined;
};

/** Why a sweep came to nothing. */
type SweepSkip = 'NotSynced' | 'SweepFailed' | 'SweepInconsistent';

/** What became of an orphan that is due. */
export type OrphanOutcome =
  | { readonly kind: 'removed' }
  /** Something forbids it, for long; it uses up no limit. */
  | { readonly kind: 'kept'; readonly why: string }
  /** A call was accepted and its task still runs or failed, or it may be in use. */
  | { readonly kind: 'later'; readonly why: string }
  | { readonly kind: 'failed'; readonly error: Error }
  /** The limit is used up. */
  | { readonly kind: 'waiting' }
  /** The last check did not confirm that it is an orphan; it counts from the beginning. */
  | { readonly kind: 'spared' };

/** What a sweep found and did. */
export type Swept<T> =
  | { readonly kind: 'skipped'; readonly why: SweepSkip }
  | {
      readonly kind: 'done';
      readonly own: readonly T[];
      readonly orphans: readonly T[];
      /** Too many to be plausible: none was removed. */
      readonly areTooMany: boolean;
      /** Of those that are due, by id. */
      readonly outcomes: ReadonlyMap<string, OrphanOutcome>;
    };

type Candidate = {
  readonly sinceMs: number;
  readonly sweeps: number;
  /** When it was last tried in vain. */
  readonly triedMs?: number;
};

/** Consecutive sweeps that must find an orphan, however short the grace. */
const MIN_SWEEPS = 2;
/** Age from which something may be an orphan, where the cloud reports ages. */
const MIN_AGE_MS = 900_000;
/** Up to this number orphans are plausible whatever their share: a small cluster may lose half of what it has. */
const PLAUSIBLE_COUNT = 10;
const MAX_SHARE = 0.5;

/**
 * Compares all objects of a kind with their owners, and removes those that had no owner for the whole grace and in two
 * consecutive sweeps, one at a time, each after a last check. If so many are orphans that their owners were probably lost (a
 * wrong cluster id, an emptied etcd), it only reports them.
 */
export class OrphanSweep<T> {
  readonly #kind: OrphanKind<T>;
  readonly #deps: { readonly clock: Clock; readonly log: Logger };
  readonly #graceMs: number;
  readonly #candidates = new Map<string, Candidate>();

  constructor(kind: OrphanKind<T>, deps: { readonly clock: Clock; readonly log: Logger }, graceMs: number) {
    this.#kind = kind;
    this.#deps = deps;
    this.#graceMs = graceMs;
  }

  /** Sweeps once. A sweep that comes to nothing changes nothing. Rejects with the signal's reason only. */
  async sweep(context: CallContext): Promise<Swept<T>> {
    const { isOurs, reportTooMany } = this.#kind;
    const all = await this.#list(context);
    if (typeof all === 'string') return { kind: 'skipped', why: all };
    const own = all.filter((one) => isOurs(one));
    const orphans = this.#orphansOf(own);
    if (orphans === undefined) return this.#skip('NotSynced');
    const areTooMany = orphans.length > PLAUSIBLE_COUNT && orphans.length > own.length * MAX_SHARE;
    if (areTooMany && reportTooMany !== undefined) {
      this.#candidates.clear();
      reportTooMany(orphans, own.length);
      return { kind: 'done', own, orphans, areTooMany, outcomes: new Map() };
    }
    const outcomes = await this.#treat(this.#dueOf(orphans), context);
    return { kind: 'done', own, orphans, areTooMany: false, outcomes };
  }

  async #list(context: CallContext): Promise<readonly T[] | SweepSkip> {
    try {
      const all = await this.#kind.list(context);
      return typeof all === 'string' ? this.#skip(all).why : all;
    } catch (error) {
      context.signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      return this.#skip('SweepFailed', { error }).why;
    }
  }

  #skip(why: SweepSkip, fields: Readonly<Record<string, unknown>> = {}) {
    this.#deps.log.warn(this.#kind.skipMessage, { why, ...fields });
    return { kind: 'skipped', why } as const;
  }

  #orphansOf(own: readonly T[]): readonly T[] | undefined {
    const { ownerCheck, createdAtMs } = this.#kind;
    const hasOwner = ownerCheck();
    if (hasOwner === undefined) return undefined;
    const nowMs = this.#deps.clock.nowMs();
    const isOld = (one: T): boolean => {
      const atMs = createdAtMs?.(one) ?? Number.NEGATIVE_INFINITY;
      return atMs !== 0 && nowMs - atMs >= MIN_AGE_MS;
    };
    return own.filter((one) => isOld(one) && !hasOwner(one));
  }

  /**
   * Returns those that are due, the longest first; one that was tried in vain waits from then on as if it had been found then:
   * it keeps no other from its turn, nor others it. The time is monotonic: it is never compared with a clock of the cloud.
   */
  #dueOf(orphans: readonly T[]): readonly T[] {
    const nowMs = this.#deps.clock.monotonicMs();
    const { idOf, isLast = () => false } = this.#kind;
    const found = orphans.map((one) => {
      const known: Candidate = this.#candidates.get(idOf(one)) ?? { sinceMs: nowMs, sweeps: 0 };
      return { one, id: idOf(one), candidate: { ...known, sweeps: known.sweeps + 1 } };
    });
    this.#candidates.clear();
    for (const { id, candidate } of found) this.#candidates.set(id, candidate);
    const turnMsOf = ({ triedMs, sinceMs }: Candidate): number => triedMs ?? sinceMs;
    return found
      .filter(({ candidate: { sinceMs, sweeps } }) => sweeps >= MIN_SWEEPS && nowMs - sinceMs >= this.#graceMs)
      .toSorted(
        (a, b) => turnMsOf(a.candidate) - turnMsOf(b.candidate) || Number(isLast(a.one)) - Number(isLast(b.one)),
      )
      .map(({ one }) => one);
  }

  async #treat(due: readonly T[], context: CallContext): Promise<ReadonlyMap<string, OrphanOutcome>> {
    const { idOf, limit, whyKept, report } = this.#kind;
    const outcomes = new Map<string, OrphanOutcome>();
    let tried = 0;
    for (const one of due) {
      const why = whyKept?.(one);
      const standing = why === undefined ? ({ kind: 'waiting' } as const) : ({ kind: 'kept', why } as const);
      const mayTry = why === undefined && tried < limit();
      const outcome = mayTry ? await this.#remove(one, context) : standing;
      if (mayTry && outcome.kind !== 'kept') tried += 1;
      // It counts from the beginning, and uses up the limit of the others no more.
      if (outcome.kind === 'spared') this.#candidates.delete(idOf(one));
      if (outcome.kind === 'failed' || outcome.kind === 'later') this.#noteTried(idOf(one));
      outcomes.set(idOf(one), outcome);
      report(one, outcome);
    }
    return outcomes;
  }

  #noteTried(id: string): void {
    const candidate = this.#candidates.get(id);
    if (candidate !== undefined) this.#candidates.set(id, { ...candidate, triedMs: this.#deps.clock.monotonicMs() });
  }

  async #remove(one: T, context: CallContext): Promise<OrphanOutcome> {
    const { idOf, lookAgain, remove, whyKept } = this.#kind;
    let now: T | undefined;
    try {
      now = await lookAgain(one, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof Error)) throw error;
      this.#deps.log.warn('an orphan could not be checked and stays', { id: idOf(one), error });
      return { kind: 'failed', error };
    }
    // After the look, which took its time.
    if (now === undefined) return { kind: 'spared' };
    const isOrphan = this.#kind.isOurs(now) && this.#orphansOf([now])?.length === 1;
    if (!isOrphan || whyKept?.(now) !== undefined) return { kind: 'spared' };
    try {
      return await remove(now, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      return error.retry === 'gone' ? { kind: 'removed' } : { kind: 'failed', error };
    }
  }
}
