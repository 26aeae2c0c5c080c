/**
 * How long after the begin of a term a write of the former leader may still have its effect: its request is on the way,
 * or the API server works on it.
 */
export const FORMER_WRITES_MS = 60_000;

/** Two writers of one object do not answer each other faster than this. */
const MIN_UNDO_INTERVAL_MS = 1_000;

/**
 * What a state is that was read. `ours`: this leader wrote it, or reads the object for the first time. `inherited`: it
 * differs, and the former leader may have written it. `edited`: another client changed it since it was `own`; `waitMs`: it
 * is undone then, because that client writes again and again.
 */
type Origin<T> =
  | { readonly kind: 'ours' | 'inherited' }
  | { readonly kind: 'edited'; readonly own: T; readonly waitMs: number };

type Own<T> = { readonly uid: string; readonly state: T; readonly isWritten: boolean; readonly attempted?: T };

/**
 * The last state of an object, of what ipamd alone writes of it, that this leader wrote or found when it first read the
 * object. A state that is neither this one, nor that of a write without an answer, is another client's. One for each
 * object and term.
 */
export class OwnState<T> {
  readonly #isSame: (one: T, other: T) => boolean;
  #own: Own<T> | undefined;
  #undoneMs = Number.NEGATIVE_INFINITY;

  constructor(isSame: (one: T, other: T) => boolean) {
    this.#isSame = isSame;
  }

  /** The last state; undefined while none was taken. */
  get last(): Pick<Own<T>, 'uid' | 'state'> | undefined {
    return this.#own;
  }

  /** Whether this leader wrote the object, so that no write of a former leader can come after it. */
  get isWritten(): boolean {
    return this.#own?.isWritten === true;
  }

  /** Classifies what was read. Until this leader has written the object, a difference may be the former leader's when `mayBeFormer`. */
  classify(uid: string, state: T, nowMs: number, mayBeFormer: boolean): Origin<T> {
    const own = this.#own;
    if (own?.uid !== uid || this.#isAttempted(state) || this.#isSame(own.state, state)) return { kind: 'ours' };
    if (mayBeFormer && !own.isWritten) return { kind: 'inherited' };
    return { kind: 'edited', own: own.state, waitMs: Math.max(0, this.#undoneMs + MIN_UNDO_INTERVAL_MS - nowMs) };
  }

  /** Takes a state as it is: one that was not edited. */
  take(uid: string, state: T): void {
    const isKnown = this.#own?.uid === uid;
    this.#own = { uid, state, isWritten: isKnown && (this.isWritten || this.#isAttempted(state)) };
  }

  /** Takes a state that this leader did not write; undefined: it cannot be read. */
  takeFormer(uid: string, state: T | undefined): void {
    this.#own = state === undefined ? undefined : { uid, state, isWritten: false };
  }

  /** Notes a state that this leader is about to write: whether it did is unknown until there is an answer. */
  noteAttempt(uid: string, state: T): void {
    this.#own = this.#own?.uid === uid ? { ...this.#own, attempted: state } : undefined;
  }

  /** Notes a state that this leader wrote. */
  noteWritten(uid: string, state: T): void {
    this.#own = { uid, state, isWritten: true };
  }

  /** Notes that a change was undone. */
  noteUndone(nowMs: number): void {
    this.#undoneMs = nowMs;
  }

  #isAttempted(state: T): boolean {
    return this.#own?.attempted !== undefined && this.#isSame(this.#own.attempted, state);
  }
}
