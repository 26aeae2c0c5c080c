import type { EipClaim } from '../../../crd/eip-claim.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { FORMER_WRITES_MS, OwnState } from '../../calls/own-state.ts';
import { isSameStatus } from './eip-status.ts';
import type { EipSpec, EipStatus } from './eip-view.ts';

/** The compared part of a claim: the status, and the Pod that holds the claim. What people may set in the spec is not. */
export type OwnPart = { readonly status: EipStatus; readonly podUID: string | undefined };

/** A part that another client changed. `waitMs`: it is undone then, because that client writes again and again. */
type Edit = { readonly part: OwnPart; readonly fields: readonly string[]; readonly waitMs: number };

/**
 * The last state of each EIPClaim that this leader wrote, or found when it first read the claim. Claims are read past the
 * watch, so a write of the former leader is seen at once. One for each term.
 */
export class OwnStatuses {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #term: { readonly startedMs: number };
  readonly #own = new Map<string, OwnState<OwnPart>>();
  readonly #onTaken: (key: string) => void;

  /** @param onTaken called with the key of a claim whose state may be the former leader's: it is to be compared with the cloud */
  constructor(clock: Pick<Clock, 'monotonicMs'>, term: { readonly startedMs: number }, onTaken: (key: string) => void) {
    this.#clock = clock;
    this.#term = term;
    this.#onTaken = onTaken;
  }

  /** Returns what another client changed; undefined: nothing. A claim is taken as it is first read. */
  editOf(key: string, claim: EipClaim): Edit | undefined {
    const own = this.#of(key);
    const { uid = '' } = claim.metadata;
    const part = ownPartOf(claim);
    const nowMs = this.#clock.monotonicMs();
    const origin = own.classify(uid, part, nowMs, nowMs - this.#term.startedMs < FORMER_WRITES_MS);
    if (origin.kind === 'edited')
      return { part: origin.own, fields: fieldsOf(origin.own, part), waitMs: origin.waitMs };
    if (origin.kind === 'inherited') this.#onTaken(key);
    own.take(uid, part);
    return undefined;
  }

  /** Notes what this leader is about to write: whether it did is unknown until there is an answer. */
  noteAttempt(key: string, { status = {}, spec }: { readonly status?: EipStatus; readonly spec?: EipSpec }): void {
    const { last } = this.#of(key);
    if (last === undefined) return;
    this.#of(key).noteAttempt(last.uid, { status, podUID: spec === undefined ? last.state.podUID : spec.podUID });
  }

  /** Notes a claim as this leader wrote it. */
  note(key: string, claim: EipClaim): void {
    this.#of(key).noteWritten(claim.metadata.uid ?? '', ownPartOf(claim));
  }

  /** Notes that a change was undone. */
  noteUndone(key: string): void {
    this.#of(key).noteUndone(this.#clock.monotonicMs());
  }

  /** Removes a claim that does not exist any more. */
  remove(key: string): void {
    this.#own.delete(key);
  }

  #of(key: string): OwnState<OwnPart> {
    const own = this.#own.get(key) ?? new OwnState<OwnPart>((one, other) => fieldsOf(one, other).length === 0);
    this.#own.set(key, own);
    return own;
  }
}

function ownPartOf({ status = {}, spec = {} }: EipClaim): OwnPart {
  return { status, podUID: spec.podUID };
}

/** Lists the fields that differ. Conditions are left out: other clients may add some. */
function fieldsOf(one: OwnPart, other: OwnPart): readonly string[] {
  const [first, second] = [one.status, other.status];
  // Keys of the two statuses themselves.
  const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])] as (keyof EipStatus)[];
  const ofStatus = keys.filter((key) => key !== 'conditions' && !isSameStatus([first[key]], [second[key]]));
  return [...(one.podUID === other.podUID ? [] : ['spec.podUID']), ...ofStatus.map((key) => `status.${key}`)];
}
