import { vpcIpName } from '../../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import type { ReconcileResult } from '../../../kube/controller.ts';
import type { InvolvedObject } from '../../../kube/events/event-object.ts';
import { guardsOf } from '../../../kube/guarded-update.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { LastReports } from '../../../kube/reporter.ts';
import { PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { type BackoffSettings, backoffMs } from '../../../runtime/backoff.ts';
import { type Fault, renderFault } from '../../../runtime/decode.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import type { ClaimFacts, StaticObject } from '../../cache/record-facts.ts';
import { IPAMD_EVENTS, type IpamdEventReason } from '../../events/event-reasons.ts';
import type { ClaimViewBuilder } from './build-claim-view.ts';
import { findObjection } from './check-claim-end.ts';
import type { ClaimDecision, ClaimReason } from './claim-decision.ts';
import type { ClaimView } from './claim-view.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { decideClaim } from './decide-claim.ts';
import { selectReservedIps } from './decide-requests.ts';
import { decideReservation } from './decide-reservation.ts';
import { publishAllocation } from './pod-allocation.ts';
import { renderInvalid } from './render-claim.ts';
import type { ReservationRunner } from './reservation-runner.ts';
import { deleteRecord, involvedClaim, writeDecision } from './write-claim.ts';
import type { ZoneNames } from './zone-names.ts';

/** Dependencies of the claim reconciler. */
type ClaimReconcilerDeps = ClaimsTerm & {
  readonly views: ClaimViewBuilder;
  readonly reservations: Pick<ReservationRunner, 'run'>;
  readonly zoneNames: Pick<ZoneNames, 'resolve'>;
};

/** Time for the caches to receive what conflicted with a write. */
const CACHE_LAG_MS = 500;
/** The times between writes of a claim that conflict one after the other: its list lacks it, or another client writes it, too. */
const CONFLICTS: BackoffSettings = { firstMs: CACHE_LAG_MS, maxMs: 15_000, factor: 2, jitter: 0 };
/** A claim that is left as it is is looked at again after this. */
const OBJECTION_MS = 15_000;
const DONE: ReconcileResult = { kind: 'done' };

/** Reconciles claims, one at a time. Use it only when every cache is synced: it treats a missing object as deleted. */
export class ClaimReconciler {
  readonly #deps: ClaimReconcilerDeps;
  /** Faults of claims, notices of claims, and annotations of Pods without a claim. */
  readonly #last = new LastReports();
  /** How many writes of a claim conflicted since the last one that did not. */
  readonly #conflicts = new Map<string, number>();

  constructor(deps: ClaimReconcilerDeps) {
    this.#deps = deps;
  }

  /**
   * Brings one claim, its VpcIPs and the requests for nodes in line with its Pod. Idempotent.
   * @throws KubeError when a write failed for another reason than a cache that is behind
   */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { claims, views, requests, conflicts } = this.#deps;
    const facts = claims.get(key);
    this.#reportAnnotations(key);
    if (facts?.isRecord === true && !(await this.#handleRecord(key, facts, signal))) return DONE;
    const { decoded, faults } = decodedOf(facts);
    if (faults.length > 0) return await this.#reportFaults(key, facts, faults, signal);
    this.#last.forget(`faults/${key}`);
    const label = views.unknownZoneOf(key);
    const zoneMs = label === undefined ? undefined : await this.#deps.zoneNames.resolve(label, signal);
    if (zoneMs !== undefined) return { kind: 'again', afterMs: zoneMs };
    await conflicts.resolveHolder(key, signal);
    const view = views.build(key, decoded, conflicts.of(key));
    const decision = decideClaim(view);
    const objection = await findObjection(this.#deps, view, decision, signal);
    if (objection !== undefined) {
      this.#deps.log.warn('a claim is left as it is', { claim: key, why: objection });
      return { kind: 'again', afterMs: OBJECTION_MS };
    }
    try {
      await this.#deleteBlockingRecords(view, decision, signal);
      await writeDecision(this.#deps, view, decision, signal);
    } catch (error) {
      if (!isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND')) throw error;
      const times = (this.#conflicts.get(key) ?? 0) + 1;
      this.#conflicts.set(key, times);
      return { kind: 'again', afterMs: backoffMs(CONFLICTS, times, 0) };
    }
    this.#conflicts.delete(key);
    this.#report(view, decision);
    if (isConflictOver(view, decision)) conflicts.remove(key);
    for (const node of requests.set(key, decision.requests, selectReservedIps(view, decision)))
      this.#deps.enqueueNode(node);
    const reservedMs = await this.#keepReservation(view, decision, signal);
    // If this pass came a little too early it would be the last one, and the claim would never show why it waits.
    const dueMs = [decision.recheckMs, views.waitDueInMs(key), reservedMs].filter((ms) => ms !== undefined);
    return dueMs.length === 0 ? DONE : { kind: 'again', afterMs: Math.max(1, Math.min(...dueMs)) };
  }

  /** Reserves or releases the address in the VPC, and gives a Pod on a super node its annotation. */
  async #keepReservation(view: ClaimView, decision: ClaimDecision, signal: AbortSignal): Promise<number | undefined> {
    const { kube, reservations } = this.#deps;
    try {
      if (await publishAllocation(kube, view, signal)) return CACHE_LAG_MS;
      return await reservations.run(view.key, decideReservation(view, decision), signal);
    } catch (error) {
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
      return CACHE_LAG_MS;
    }
  }

  /**
   * Handles a record of a Pod of that name without a static address; it is deleted when a Pod with a static address
   * exists. Returns whether to go on.
   */
  async #handleRecord(key: string, facts: ClaimFacts, signal: AbortSignal): Promise<boolean> {
    if (this.#deps.views.podOf(key) === undefined) {
      // Marks without a claim are still to be removed; the record itself belongs to the records controller.
      for (const node of this.#deps.requests.set(key, new Map(), [])) this.#deps.enqueueNode(node);
      return false;
    }
    await this.#deps.kube.delete(VPC_IP_CLAIMS, refOfKey(key), guardsOf(facts), signal).catch((error: unknown) => {
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
    });
    return false;
  }

  /** Deletes the record of a deleted Pod that has the name of a VpcIP that is to be created. */
  async #deleteBlockingRecords(view: ClaimView, { vips }: ClaimDecision, signal: AbortSignal): Promise<void> {
    for (const write of vips) {
      if (write.kind !== 'put' || write.vip !== undefined) continue;
      const existing = this.#deps.vips.get(vpcIpName(write.desired.ip));
      if (existing?.isRecord !== true || view.holderOf(write.desired.ip) !== undefined) continue;
      await deleteRecord(this.#deps.kube, existing, write.desired.ip, signal);
    }
  }

  /** Reports a malformed claim; the claim and everything that depends on it stay unchanged. */
  async #reportFaults(
    key: string,
    facts: ClaimFacts | undefined,
    faults: readonly Fault[],
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const text = faults.map(renderFault).join('; ');
    if (this.#last.note(`faults/${key}`, [text]) === undefined) return DONE;
    this.#deps.log.warn('a claim cannot be read, nothing is done to it', { claim: key, faults: text });
    this.#record(involvedClaim(key, facts?.uid), 'ClaimInvalid', text);
    this.#deps.metrics.claims.set(key, ['ClaimInvalid']);
    const body = renderInvalid(text, facts?.resourceVersion, new Date(this.#deps.clock.nowMs()).toISOString());
    await this.#deps.kube
      .patch(VPC_IP_CLAIMS, refOfKey(key), { kind: 'merge', body }, signal)
      .catch((error: unknown) => {
        // The API server refuses every write of an object that its schema does not accept; then only the event reports
        // it.
        if (!isKubeError(error)) throw error;
      });
    return DONE;
  }

  #report(view: ClaimView, { claim, notices }: ClaimDecision): void {
    const { metrics } = this.#deps;
    const uid = view.claim?.metadata.uid;
    const before = view.claim?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (claim?.kind === 'create' || claim?.kind === 'put') {
      const { reason, status } = claim.desired;
      metrics.claims.set(view.key, [reason]);
      const event = eventOf(reason);
      if (event !== undefined && before?.reason !== reason) this.#recordOnPod(view, event, status.message ?? '');
      this.#reportNotices(view, notices);
    } else if (claim?.kind === 'delete') {
      this.#record(involvedClaim(view.key, uid), 'ClaimEnded', `the address is released: ${claim.why}`);
    } else if (claim?.kind === 'finish' || view.claim === undefined) {
      metrics.claims.set(view.key, []);
      this.#last.forget(`notices/${view.key}`);
    }
  }

  /** Reports what differs from the last report, of this Pod or the former one. */
  #reportNotices(view: ClaimView, notices: ClaimDecision['notices']): void {
    const { key, pod } = view;
    const textOf = (notice: ClaimDecision['notices'][number]): string => JSON.stringify([pod?.uid, notice]);
    if (this.#last.note(`notices/${key}`, notices, textOf) === undefined) return;
    for (const { reason, message, vip } of notices) {
      if (vip === undefined) this.#recordOnPod(view, reason, message);
      else this.#record(involvedObject(VPC_IPS, vip), reason, message);
    }
  }

  /** Reports wrong annotations of a Pod that has no claim: those of the others are notices of their claims. */
  #reportAnnotations(key: string): void {
    const unclaimed = this.#deps.views.unclaimedFaultsOf(key);
    for (const { uid, faults } of this.#last.note(`annotations/${key}`, unclaimed === undefined ? [] : [unclaimed]) ??
      [])
      for (const message of faults)
        this.#record(involvedObject(PODS, { ...refOfKey(key), uid }), 'AnnotationInvalid', message);
  }

  /** Records an event on the Pod that waits for the claim, if there is one: that is where people look. */
  #recordOnPod(view: ClaimView, reason: IpamdEventReason, message: string): void {
    const { pod, key, claim } = view;
    if (pod === undefined || reason === 'ClaimInUse') {
      this.#record(involvedClaim(key, claim?.metadata.uid), reason, message);
      return;
    }
    this.#record(involvedObject(PODS, { ...refOfKey(key), uid: pod.uid }), reason, message);
  }

  #record(involved: InvolvedObject, reason: IpamdEventReason, message: string): void {
    this.#deps.events.record({ involved, type: IPAMD_EVENTS[reason].type, reason, message });
  }
}

function decodedOf(facts: ClaimFacts | undefined): StaticObject<VpcIpClaim> {
  return facts?.staticObject ?? { decoded: undefined, faults: [] };
}

/** Reports whether a conflict does not matter any more: the claim has its address, or is deleted. */
function isConflictOver({ locations, claim }: ClaimView, decision: ClaimDecision): boolean {
  const isDeleted = claim === undefined && decision.claim === undefined;
  const isReserved = claim?.status?.reservation?.state === 'Reserved';
  return (
    isDeleted || isReserved || decision.claim?.kind === 'finish' || locations.some(({ isReleasing }) => !isReleasing)
  );
}

function eventOf(reason: ClaimReason): IpamdEventReason | undefined {
  return (EVENTS as Readonly<Partial<Record<ClaimReason, IpamdEventReason>>>)[reason];
}

const EVENTS = {
  NodeFull: 'NodeFull',
  AddressTaken: 'AddressTaken',
  AddressElsewhere: 'AddressElsewhere',
  AddressPoolExhausted: 'AddressPoolExhausted',
  StaticIPDisabled: 'StaticIPDisabled',
  ClaimInUse: 'ClaimInUse',
} as const satisfies Readonly<Partial<Record<ClaimReason, IpamdEventReason>>>;
