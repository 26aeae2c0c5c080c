import type { Operation } from '../../dataplane/operation.ts';
import { type BackoffDecision, type BackoffLimits, type Contest, decideBackoff, isOver } from './decide-backoff.ts';

/** The answer about one operation. */
type FightVerdict = Pick<BackoffDecision, 'verdict' | 'isAlarm'>;

/** Most objects that are remembered; the one that was repaired longest ago gives way. */
const MAX_OBJECTS = 4_096;

type Entry = { readonly contest: Contest; readonly operation: Operation };

/**
 * Remembers which objects other programs keep changing back, and spaces their repairs: two daemons that rewrite a rule
 * hundreds of times a second cost packets and CPU. Objects are named by `objectOf`; times are monotonic milliseconds.
 */
export class FightDetector {
  readonly #limits: BackoffLimits;
  readonly #entries = new Map<string, Entry>();

  constructor(limits: BackoffLimits) {
    this.#limits = limits;
  }

  /**
   * Decides whether `operation` on `object` may be done at `nowMs`, and remembers the repair if so.
   * @param changedAtMs When another process made it necessary; undefined when none did
   */
  evaluate(object: string, operation: Operation, changedAtMs: number | undefined, nowMs: number): FightVerdict {
    const known = this.#entries.get(object)?.contest;
    const { verdict, isAlarm, contest } = decideBackoff(known, { changedAtMs, nowMs }, this.#limits);
    // Repairs of what no other program undoes need no memory beyond this pass.
    if (known !== undefined || changedAtMs !== undefined) this.#remember(object, { contest, operation });
    return { verdict, isAlarm };
  }

  /** Notes that the repair of `object` was done at `nowMs`: it stands from then on. */
  noteDone(object: string, nowMs: number): void {
    const entry = this.#entries.get(object);
    if (entry !== undefined)
      this.#entries.set(object, { ...entry, contest: { ...entry.contest, repairedAtMs: nowMs } });
  }

  /** Reports whether a wait of `object` is under way at `nowMs`; counts nothing. */
  isHeld(object: string, nowMs: number): boolean {
    const heldUntilMs = this.#entries.get(object)?.contest.heldUntilMs;
    return heldUntilMs !== undefined && nowMs < heldUntilMs;
  }

  /** Returns the operations that other programs kept undoing within the last window, whether a wait is under way or not. */
  contested(nowMs: number): readonly Operation[] {
    return this.#operations(
      ({ isFight, undoneAtMs }) => isFight && nowMs - (undoneAtMs.at(-1) ?? nowMs) < this.#limits.windowMs,
    );
  }

  /** Returns the operations that were held back and have not stood for `calmMs` since: no ADD may rely on them. */
  notCalm(nowMs: number): readonly Operation[] {
    return this.#operations(({ heldUntilMs }) => nowMs < heldUntilMs + this.#limits.calmMs);
  }

  /** When a wait ends or an object becomes calm, the earliest after `nowMs`; undefined without any. */
  nextChangeMs(nowMs: number): number | undefined {
    let next = Number.POSITIVE_INFINITY;
    for (const { contest } of this.#entries.values()) {
      for (const atMs of [contest.heldUntilMs, contest.heldUntilMs + this.#limits.calmMs])
        if (atMs > nowMs) next = Math.min(next, atMs);
    }
    return Number.isFinite(next) ? next : undefined;
  }

  /** Removes what is long over, so that objects that come and go take no memory. */
  removeExpired(nowMs: number): void {
    for (const [object, { contest }] of this.#entries)
      if (isOver(contest, nowMs, this.#limits)) this.#entries.delete(object);
  }

  #operations(isOne: (contest: Contest) => boolean): readonly Operation[] {
    return [...this.#entries.values()].filter(({ contest }) => isOne(contest)).map(({ operation }) => operation);
  }

  #remember(object: string, entry: Entry): void {
    // The order of a Map is that of insertion: the first one is the one repaired longest ago.
    this.#entries.delete(object);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= MAX_OBJECTS && oldest.done !== true) this.#entries.delete(oldest.value);
    this.#entries.set(object, entry);
  }
}
