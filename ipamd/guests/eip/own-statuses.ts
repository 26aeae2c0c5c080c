import type { EipClaim } from '../../../crd/eip-claim.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { isSameStatus } from './eip-status.ts';
import type { EipSpec, EipStatus } from './eip-view.ts';

/** The compared part of a claim: the status, and the Pod that holds the claim. What people may set in the spec is not. */
export type OwnPart = { readonly status: EipStatus; readonly podUID: string | undefined };

/** A part that another client changed. `waitMs`: it is undone then, because that client writes again and again. */
type Edit = { readonly part: OwnPart; readonly fields: readonly string[]; readonly waitMs: number };

type Own = {
  readonly uid: string;
  readonly part: OwnPart;
  /** True when this leader wrote the claim. */
  readonly isWritten: boolean;
  readonly attempted?: OwnPart;
};

/**
 * How long after the begin of a term a write of the former leader may still have its effect: its request is on the way,
 * or the API server works on it. Claims are read past the watch, so it is seen at once.
 */
const FORMER_WRITES_MS = 60_000;
/** Two writers of one status do not answer each other faster than this. */
const MIN_UNDO_INTERVAL_MS = 1_000;

/**
 * The last state of each EIPClaim that this leader wrote, or found when it first read the claim. ipamd is the only writer:
 * what another client changed is undone before anything is decided on it, unless it may be the last write of the former
 * leader. One for each term.
 */
export class OwnStatuses {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #term: { readonly startedMs: number };
  readonly #own = new Map<string, Own>();
  readonly #undoneMs = new Map<string, number>();
  readonly #onTaken: (key: string) => void;

  /** @param onTaken called with the key of a claim whose state may be the former leader's: it is to be compared with the cloud */
  constructor(clock: Pick<Clock, 'monotonicMs'>, term: { readonly startedMs: number }, onTaken: (key: string) => void) {
    this.#clock = clock;
    this.#term = term;
    this.#onTaken = onTaken;
  }

  /** Returns what another client changed; undefined: nothing. A claim is taken as it is first read. */
  editOf(key: string, claim: EipClaim): Edit | undefined {
    const own = this.#own.get(key);
    const { uid = '' } = claim.metadata;
    const part = ownPartOf(claim);
    const nowMs = this.#clock.monotonicMs();
    const isOwn = own?.attempted !== undefined && isSame(own.attempted, part);
    const isKnown = own?.uid !== uid || isOwn || isSame(own.part, part);
    const mayBeFormer = own?.isWritten === false && nowMs - this.#term.startedMs < FORMER_WRITES_MS;
    if (isKnown || mayBeFormer) {
      if (!isKnown) this.#onTaken(key);
      this.#own.set(key, { uid, part, isWritten: own?.uid === uid && (isOwn || own.isWritten) });
      return undefined;
    }
    const sinceMs = this.#undoneMs.get(key);
    const waitMs = sinceMs === undefined ? 0 : sinceMs + MIN_UNDO_INTERVAL_MS - nowMs;
    return { part: own.part, fields: fieldsOf(own.part, part), waitMs: Math.max(0, waitMs) };
  }

  /** Notes what this leader is about to write: whether it did is unknown until there is an answer. */
  noteAttempt(key: string, { status = {}, spec }: { readonly status?: EipStatus; readonly spec?: EipSpec }): void {
    const own = this.#own.get(key);
    if (own === undefined) return;
    const podUID = spec === undefined ? own.part.podUID : spec.podUID;
    this.#own.set(key, { ...own, attempted: { status, podUID } });
  }

  /** Notes a claim as this leader wrote it. */
  note(key: string, claim: EipClaim): void {
    this.#own.set(key, { uid: claim.metadata.uid ?? '', part: ownPartOf(claim), isWritten: true });
  }

  /** Notes that a change was undone. */
  noteUndone(key: string): void {
    this.#undoneMs.set(key, this.#clock.monotonicMs());
  }

  /** Removes a claim that does not exist any more. */
  remove(key: string): void {
    this.#own.delete(key);
    this.#undoneMs.delete(key);
  }
}

function ownPartOf({ status = {}, spec = {} }: EipClaim): OwnPart {
  return { status, podUID: spec.podUID };
}

function isSame(one: OwnPart, other: OwnPart): boolean {
  return fieldsOf(one, other).length === 0;
}

/** Lists the fields that differ. Conditions are left out: other clients may add some. */
function fieldsOf(one: OwnPart, other: OwnPart): readonly string[] {
  const [first, second] = [one.status, other.status];
  // Keys of the two statuses themselves.
  const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])] as (keyof EipStatus)[];
  const ofStatus = keys.filter((key) => key !== 'conditions' && !isSameStatus([first[key]], [second[key]]));
  return [...(one.podUID === other.podUID ? [] : ['spec.podUID']), ...ofStatus.map((key) => `status.${key}`)];
}
