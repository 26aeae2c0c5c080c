import { classifyError } from '../../cloud/classify-error.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../../cloud/cloud-error.ts';
import type { ReservedIp, ReservedIpPort } from '../../cloud/reserved-ips.ts';
import type { VpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Ids } from '../nec/decision.ts';
import type { ReservationOrder, ReservationStep } from './decide-reservation.ts';
import { isReservedFor, reservationName, reservationTags } from './reservation-identity.ts';
import { CLAIMS, refOf } from './write-claim.ts';

/** Dependencies of the reservations. */
type ReservationDeps = {
  readonly kube: KubeClient;
  readonly cloud: { readonly reservedIps: ReservedIpPort };
  readonly clusterId: string;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Called when another resource has the address that was to be reserved. */
  readonly onTaken: (key: string, ip: string, message: string) => void;
};

/** The last failure of a claim's step, and when the next try is due, monotonic milliseconds. */
type Failure = { readonly message: string; readonly tries: number; readonly untilMs: number };

type Reservation = NonNullable<NonNullable<VpcIpClaim['status']>['reservation']>;

/** Longest time of one call: a reconcile of the claim waits for it. */
const CALL_MS = 15_000;
/** A step that failed is tried again after this, later after more: each try writes the claim twice. */
const BACKOFF: BackoffSettings = { firstMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.2 };
/** After a refusal that another try does not change, no address is taken off an ENI for a reservation. */
const PAUSE_MS = 60_000;
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
 */
export class ReservationRunner {
  readonly #deps: ReservationDeps;
  readonly #failures = new Map<string, Failure>();
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ReservationDeps) {
    this.#deps = deps;
  }

  /** Returns why the last step of a claim failed, for people; undefined when it did not. */
  problemOf(key: string): string | undefined {
    return this.#failures.get(key)?.message;
  }

  /** True for a while after the cloud refused reservations altogether: by quota, or for want of a right. */
  get isPaused(): boolean {
    return this.#deps.clock.monotonicMs() < this.#pausedUntilMs;
  }

  /**
   * Carries out one step for a claim. Returns the milliseconds until the claim is to be reconciled again; undefined when
   * nothing is left to do. @throws KubeError
   */
  async run(key: string, step: ReservationStep, signal: AbortSignal): Promise<number | undefined> {
    const { clock, random, log } = this.#deps;
    const failure = step.kind === 'none' ? undefined : this.#failures.get(key);
    const leftMs = (failure?.untilMs ?? 0) - clock.monotonicMs();
    if (failure !== undefined && leftMs > 0) return leftMs;
    try {
      if (step.kind === 'reserve') await this.#reserve(key, step.order, signal);
      else if (step.kind === 'release') await this.#release(key, signal);
      this.#failures.delete(key);
      return undefined;
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

  async #reserve(key: string, order: ReservationOrder, signal: AbortSignal): Promise<void> {
    const { cloud, clusterId, ids } = this.#deps;
    const fresh: Reservation = {
      state: 'Recorded',
      clientToken: ids.next(),
      vpcID: order.vpcId,
      subnetID: order.subnetId,
      ...(order.ip === undefined ? {} : { ip: order.ip }),
    };
    const recorded = await this.#write(key, (before) => before ?? fresh, signal);
    if (recorded?.state !== 'Recorded') return;
    const context = this.#contextOf(key, signal);
    const [found, ...others] = await this.#find(key, recorded, context);
    const isOther = found !== undefined && recorded.ip !== undefined && found.ip !== recorded.ip;
    for (const one of isOther ? [found, ...others] : others) await this.#end(recorded, one.reservationId, context);
    const made =
      found !== undefined && !isOther
        ? found
        : await cloud.reservedIps.reserve(specOf(clusterId, key, recorded), context).catch(async (error: unknown) => {
            if (isDefinite(error)) await this.#withdraw(key, recorded, error, signal);
            throw error;
          });
    const subnetID = made.subnetId === '' ? recorded.subnetID : made.subnetId;
    const { clientToken, vpcID } = recorded;
    const reserved: Reservation = {
      state: 'Reserved',
      clientToken,
      vpcID,
      subnetID,
      ip: made.ip,
      id: made.reservationId,
    };
    await this.#write(key, (before) => (isSame(before, recorded) ? reserved : before), signal);
  }

  async #release(key: string, signal: AbortSignal): Promise<void> {
    const { cloud, clusterId } = this.#deps;
    const mark = (before: Reservation | undefined): Reservation | undefined =>
      before && { ...before, state: 'Releasing' };
    const recorded = await this.#write(key, mark, signal);
    if (recorded === undefined) return;
    const context = this.#contextOf(key, signal);
    const found = await this.#find(key, recorded, context);
    const idsToEnd = new Set(found.map((one) => one.reservationId));
    if (recorded.id !== undefined) idsToEnd.add(recorded.id);
    if (recorded.id === undefined && found.length === 0) {
      // The call may be on its way: with the same token its one result is learnt, whichever arrives first.
      const spec = specOf(clusterId, key, recorded);
      const made = await cloud.reservedIps.reserve(spec, context).catch((error: unknown) => {
        if (isDefinite(error)) return undefined;
        throw error;
      });
      if (made !== undefined) idsToEnd.add(made.reservationId);
    }
    for (const id of idsToEnd) await this.#end(recorded, id, context);
    await this.#write(key, (before) => (isSame(before, recorded) ? undefined : before), signal);
  }

  /** Notes a refusal that the same request would meet again; the record is withdrawn, for nothing was reserved. */
  async #withdraw(key: string, recorded: Reservation, error: CloudError, signal: AbortSignal): Promise<void> {
    if (error.code.startsWith(TAKEN)) this.#deps.onTaken(key, recorded.ip ?? '', error.message);
    else this.#pausedUntilMs = this.#deps.clock.monotonicMs() + PAUSE_MS;
    await this.#write(key, (before) => (isSame(before, recorded) ? undefined : before), signal);
  }

  async #find(key: string, { vpcID }: Reservation, context: CallContext): Promise<readonly ReservedIp[]> {
    const { cloud, clusterId } = this.#deps;
    const query = { name: reservationName(clusterId, key) };
    const { reservations, isConsistent } = await cloud.reservedIps.find(vpcID, query, context);
    if (!isConsistent) {
      const text = `the reservations named ${query.name} changed while they were listed`;
      throw classifyError({ code: 'BAD_ANSWER', action: 'DescribeReserveIpAddresses', text });
    }
    return reservations.filter((one) => isReservedFor(one, clusterId, key));
  }

  async #end({ vpcID }: Reservation, id: string, context: CallContext): Promise<void> {
    await this.#deps.cloud.reservedIps.release(vpcID, id, context).catch((error: unknown) => {
      if (!isCloudError(error, 'gone')) throw error;
    });
  }

  /** Changes the record in the claim; returns the record after it. Undefined when there is none, or no claim. */
  async #write(
    key: string,
    change: (before: Reservation | undefined) => Reservation | undefined,
    signal: AbortSignal,
  ): Promise<Reservation | undefined> {
    const edit = (object: KubeObject): KubeObject | undefined => {
      const before = readReservation(object);
      const after = change(before);
      if (after === before) return undefined;
      const { reservation: _before, ...others } = isRecord(object['status']) ? object['status'] : {};
      return { ...object, status: { ...others, ...(after === undefined ? {} : { reservation: after }) } };
    };
    const written = await updateGuarded(this.#deps.kube, CLAIMS, refOf(key), edit, { signal });
    return written === undefined ? undefined : readReservation(written);
  }

  #contextOf(key: string, signal: AbortSignal): CallContext {
    return { priority: 'pod', owner: key, signal, timeoutMs: CALL_MS };
  }
}

function readReservation(object: KubeObject): Reservation | undefined {
  const { reservation } = isRecord(object['status']) ? object['status'] : {};
  // Checked by the schema of the kind.
  return isRecord(reservation) ? (reservation as Reservation) : undefined;
}

function isSame(before: Reservation | undefined, { clientToken, state }: Reservation): boolean {
  return before?.clientToken === clientToken && before.state === state;
}

/** Tells whether the cloud answered that nothing was done, and would answer the same again. */
function isDefinite(error: unknown): error is CloudError {
  return isCloudError(error, 'never', 'quota', 'gone');
}

function specOf(clusterId: string, key: string, { vpcID, subnetID, ip, clientToken }: Reservation) {
  return {
    vpcId: vpcID,
    subnetId: subnetID,
    ...(ip === undefined ? {} : { ip }),
    name: reservationName(clusterId, key),
    tags: reservationTags(clusterId, key),
    clientToken,
  };
}
