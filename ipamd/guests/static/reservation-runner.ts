import type { CallContext } from '../../../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../../../cloud/cloud-error.ts';
import type { ReservedIp } from '../../../cloud/reserved-ips.ts';
import { type BackoffSettings, backoffMs } from '../../../runtime/backoff.ts';
import { noteConflict } from './address-conflicts.ts';
import type { ClaimsTerm } from './claims-term.ts';
import type { ReservationOrder, ReservationStep } from './decide-reservation.ts';
import { isReservedFor, reservationName, reservationTags } from './reservation-identity.ts';
import { changeReservation, type ReservationRecord } from './reservation-record.ts';
import { ReservationSearch } from './reservation-search.ts';
import { involvedClaim } from './write-claim.ts';

/** The last failure of a claim's step, and when the next try is due, monotonic milliseconds. */
type Failure = { readonly message: string; readonly tries: number; readonly untilMs: number };

/** Since when, and in how many looks, the cloud has listed no reservation of a claim that has one by its record. */
type Absence = { readonly sinceMs: number; readonly looks: number };

/** Longest time of one call: a reconcile of the claim waits for it. */
const CALL_MS = 15_000;
/** A step that failed is tried again after this, later after more: each try writes the claim twice. */
const BACKOFF: BackoffSettings = { firstMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.2 };
/** After a refusal that another try does not change, no address is taken off an ENI for a reservation. */
const PAUSE_MS = 60_000;
/** A description may be old: what is not listed is looked for again after this, and is gone after the second time. */
const LOOK_AGAIN_MS = 5_000;
const GONE_MS = 10_000;
/** Error code for an address that another resource has. */
const TAKEN = 'ResourceInUse';

/**
 * Reserves and releases the addresses of claims in the VPC.
 *
 * ```
 *   (none) --write--> Recorded --find, reserve--> Reserved --write--> Releasing --find, release--> (none)
 * ```
 * The state is written into the claim before each call, with the ClientToken. Whatever was recorded is finished with the
 * same token, so one record never makes two reservations, whoever finishes it. The claim keeps its finalizer until the
 * reservation is gone.
 *
 * The record may have been edited. Only what name, tags and VPC prove to be the claim's is released; a record of another
 * address than that of the claim's reservation is corrected first.
 */
export class ReservationRunner {
  readonly #term: ClaimsTerm;
  readonly #search: ReservationSearch;
  readonly #failures = new Map<string, Failure>();
  readonly #absences = new Map<string, Absence>();
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(term: ClaimsTerm) {
    this.#term = term;
    this.#search = new ReservationSearch(term);
  }

  /** Returns why the last step of a claim failed, for people; undefined when it did not. */
  problemOf(key: string): string | undefined {
    return this.#failures.get(key)?.message;
  }

  /** True for a while after the cloud refused reservations altogether: by quota, or for want of a right. */
  get isPaused(): boolean {
    return this.#term.clock.monotonicMs() < this.#pausedUntilMs;
  }

  /**
   * Carries out one step for a claim. Returns the milliseconds until the claim is to be reconciled again; undefined when
   * nothing is left to do. @throws KubeError
   */
  async run(key: string, step: ReservationStep, signal: AbortSignal): Promise<number | undefined> {
    const { clock, random, log } = this.#term;
    const failure = step.kind === 'none' ? undefined : this.#failures.get(key);
    const leftMs = (failure?.untilMs ?? 0) - clock.monotonicMs();
    if (failure !== undefined && leftMs > 0) return leftMs;
    try {
      const againMs = await this.#carryOut(key, step, signal);
      this.#failures.delete(key);
      return againMs;
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('the reservation of an address is tried again', { claim: key, error: error.message });
      const tries = (failure?.tries ?? 0) + 1;
      const afterMs = Math.max(backoffMs(BACKOFF, tries, random()), error.afterMs);
      this.#failures.set(key, { message: error.message, tries, untilMs: clock.monotonicMs() + afterMs });
      return afterMs;
    }
  }

  async #carryOut(key: string, step: ReservationStep, signal: AbortSignal): Promise<number | undefined> {
    if (step.kind === 'reserve') return await this.#reserve(key, step.order, signal);
    if (step.kind === 'release') return await this.#release(key, signal);
    this.#absences.delete(key);
    return undefined;
  }

  /** Returns the milliseconds until the next look when it is not sure that what the cloud answered is there. */
  async #reserve(key: string, order: ReservationOrder, signal: AbortSignal): Promise<number | undefined> {
    const { cloud, config, ids } = this.#term;
    const { clusterId } = config;
    const fresh: ReservationRecord = {
      state: 'Recorded',
      clientToken: ids.next(),
      vpcID: order.vpcId,
      subnetID: order.subnetId,
      ...(order.ip === undefined ? {} : { ip: order.ip }),
    };
    const recorded = await this.#write(key, (before) => before ?? fresh, signal);
    if (recorded?.state !== 'Recorded') return undefined;
    if (!this.#isInOurVpc(key, recorded)) {
      await this.#write(key, (before) => (isSame(before, recorded) ? undefined : before), signal);
      return undefined;
    }
    // The cloud answers a token that it knows with the success of before, also when that reservation is gone.
    let mayBeRepeated = recorded.clientToken !== fresh.clientToken;
    const context = {
      ...this.#contextOf(key, signal),
      onRepeat: () => {
        mayBeRepeated = true;
      },
    };
    const [found, ...others] = await this.#search.own(key, recorded, context);
    const isOther = found !== undefined && recorded.ip !== undefined && found.ip !== recorded.ip;
    for (const one of isOther ? [found, ...others] : others) await this.#end(one, context);
    const made =
      found !== undefined && !isOther
        ? found
        : await cloud.reservedIps.reserve(specOf(clusterId, key, recorded), context).catch(async (error: unknown) => {
            if (isDefinite(error)) await this.#withdraw(key, recorded, error, signal);
            throw error;
          });
    const isListed = ({ reservationId }: ReservedIp): boolean => reservationId === made.reservationId;
    const isThere = made === found || !mayBeRepeated || (await this.#search.own(key, recorded, context)).some(isListed);
    if (!isThere && !this.#isGone(key)) return LOOK_AGAIN_MS;
    this.#absences.delete(key);
    const subnetID = made.subnetId === '' ? recorded.subnetID : made.subnetId;
    const { clientToken, vpcID } = recorded;
    const reserved: ReservationRecord = {
      state: 'Reserved',
      clientToken,
      vpcID,
      subnetID,
      ip: made.ip,
      id: made.reservationId,
    };
    const after = isThere ? reserved : undefined;
    await this.#write(key, (before) => (isSame(before, recorded) ? after : before), signal);
    return isThere ? undefined : LOOK_AGAIN_MS;
  }

  /** Returns the milliseconds until the next look when it is not sure yet that nothing is left. */
  async #release(key: string, signal: AbortSignal): Promise<number | undefined> {
    const present = await this.#write(key, (before) => before, signal);
    if (present === undefined) return undefined;
    const context = this.#contextOf(key, signal);
    const listed = await this.#search.own(key, present, context);
    if (await this.#correct(key, present, listed, signal)) return undefined;
    const mark = (before: ReservationRecord | undefined): ReservationRecord | undefined =>
      before && { ...before, state: 'Releasing' };
    const recorded = await this.#write(key, mark, signal);
    if (recorded === undefined) return undefined;
    this.#isInOurVpc(key, recorded);
    const isNamed = listed.some(({ reservationId }) => reservationId === recorded.id);
    if (recorded.id !== undefined && !isNamed) {
      const foreign = await this.#search.foreign(key, recorded, context);
      if (foreign !== undefined || listed.length > 0) this.#reportForeign(key, recorded, listed);
      else if (!this.#isGone(key)) return LOOK_AGAIN_MS;
    }
    const isUnlearnt = recorded.id === undefined && listed.length === 0;
    const all = isUnlearnt ? await this.#learn(key, recorded, context) : listed;
    for (const one of all) await this.#end(one, context);
    await this.#write(key, (before) => (isSame(before, recorded) ? undefined : before), signal);
    this.#absences.delete(key);
    return undefined;
  }

  /**
   * Writes into the record which address is reserved, when it says another one: the Pod may use what is reserved. The
   * next reconcile decides again. Returns whether it did.
   */
  async #correct(
    key: string,
    present: ReservationRecord,
    listed: readonly ReservedIp[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const [only, ...others] = listed;
    if (present.state !== 'Reserved' || only === undefined || others.length > 0) return false;
    if (present.ip === undefined || only.ip === present.ip) return false;
    const subnetID = only.subnetId === '' ? present.subnetID : only.subnetId;
    const { ip, reservationId: id, vpcId: vpcID } = only;
    const corrected: ReservationRecord = { ...present, vpcID, subnetID, ip, id };
    await this.#write(key, (before) => (isSame(before, present) ? corrected : before), signal);
    this.#report(
      key,
      'ObjectMended',
      `status.reservation named ${present.ip}; ${ip} (${id}) is reserved for this claim`,
    );
    return true;
  }

  /** Reports whether a reservation that is not listed is gone: in two looks, a while apart. */
  #isGone(key: string): boolean {
    const nowMs = this.#term.clock.monotonicMs();
    const { sinceMs, looks } = this.#absences.get(key) ?? { sinceMs: nowMs, looks: 0 };
    this.#absences.set(key, { sinceMs, looks: looks + 1 });
    return looks > 0 && nowMs - sinceMs >= GONE_MS;
  }

  /** Learns what a call made whose answer is not known: with the same token it has one result, whichever arrives first. */
  async #learn(key: string, recorded: ReservationRecord, context: CallContext): Promise<readonly ReservedIp[]> {
    const { cloud, config } = this.#term;
    const { clusterId } = config;
    if (!this.#search.isOurVpc(recorded.vpcID)) return [];
    const made = await cloud.reservedIps.reserve(specOf(clusterId, key, recorded), context).catch((error: unknown) => {
      if (isDefinite(error)) return undefined;
      throw error;
    });
    if (made === undefined) return [];
    if (made.name === reservationName(clusterId, key) && isReservedFor(made, clusterId, key)) return [made];
    // The answer may lack name and tags; an edited token has the answer of another call.
    const listed = await this.#search.own(key, recorded, context);
    if (listed.length === 0) this.#reportForeign(key, { ...recorded, id: made.reservationId }, listed);
    return listed;
  }

  /** Notes a refusal that the same request would meet again; the record is withdrawn, for nothing was reserved. */
  async #withdraw(key: string, recorded: ReservationRecord, error: CloudError, signal: AbortSignal): Promise<void> {
    const { ip = '' } = recorded;
    if (error.code.startsWith(TAKEN)) {
      // Another resource has the address that was to be reserved.
      noteConflict(this.#term, key, ip === '' ? [] : [ip], error.message);
    } else this.#pausedUntilMs = this.#term.clock.monotonicMs() + PAUSE_MS;
    await this.#write(key, (before) => (isSame(before, recorded) ? undefined : before), signal);
  }

  async #end({ vpcId, reservationId }: ReservedIp, context: CallContext): Promise<void> {
    await this.#term.cloud.reservedIps.release(vpcId, reservationId, context).catch((error: unknown) => {
      if (!isCloudError(error, 'gone')) throw error;
    });
    this.#search.noteEnded(reservationId);
  }

  /** Reports whether the record names a VPC of the cluster, and reports one that does not. */
  #isInOurVpc(key: string, { vpcID }: ReservationRecord): boolean {
    const isOurs = this.#search.isOurVpc(vpcID);
    if (!isOurs) this.#report(key, 'ObjectMended', `status.reservation named VPC ${vpcID}, which is not the cluster's`);
    return isOurs;
  }

  /** Reports that the record names a reservation that is not the claim's; it is left as it is. */
  #reportForeign(key: string, { id, ip }: ReservationRecord, own: readonly ReservedIp[]): void {
    const name = reservationName(this.#term.config.clusterId, key);
    const others = own.map((one) => `${one.reservationId} (${one.ip})`).join(', ');
    const what = `status.reservation names ${id ?? 'a reservation'} of ${ip ?? 'an unknown address'}`;
    const released = own.length === 0 ? 'nothing is released' : `${others} is released instead`;
    const why = `it has not the name ${name} and the tags of this claim`;
    this.#report(key, 'ReservationForeign', `${what}; ${why}, and stays reserved; ${released}`);
  }

  #report(key: string, reason: 'ObjectMended' | 'ReservationForeign', message: string): void {
    this.#term.log.warn('the record of a reservation was edited', { claim: key, detail: message });
    this.#term.events.record({ involved: involvedClaim(key, undefined), type: 'Warning', reason, message });
  }

  async #write(
    key: string,
    change: (before: ReservationRecord | undefined) => ReservationRecord | undefined,
    signal: AbortSignal,
  ): Promise<ReservationRecord | undefined> {
    return await changeReservation(this.#term.kube, key, change, signal);
  }

  #contextOf(key: string, signal: AbortSignal): CallContext {
    return { priority: 'pod', owner: key, signal, timeoutMs: CALL_MS };
  }
}

function isSame(before: ReservationRecord | undefined, { clientToken, state }: ReservationRecord): boolean {
  return before?.clientToken === clientToken && before.state === state;
}

/** Reports whether the cloud answered that nothing was done, and would answer the same again. */
function isDefinite(error: unknown): error is CloudError {
  return isCloudError(error, 'never', 'quota', 'gone');
}

function specOf(clusterId: string, key: string, { vpcID, subnetID, ip, clientToken }: ReservationRecord) {
  return {
    vpcId: vpcID,
    subnetId: subnetID,
    ...(ip === undefined ? {} : { ip }),
    name: reservationName(clusterId, key),
    tags: reservationTags(clusterId, key),
    clientToken,
  };
}
