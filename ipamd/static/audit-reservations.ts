import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { areTooMany, OrphanTracker } from '../../cloud/orphan-tracker.ts';
import type { ReservedIp, ReservedIpPort } from '../../cloud/reserved-ips.ts';
import { RESERVATION_TAG } from '../../crd/cloud-tags.ts';
import { RECORD_LABEL } from '../../crd/names.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { AuditEvents } from '../audit/audit.ts';
import { type PodFacts, podKeyOf } from '../cache/pod-facts.ts';
import type { ClaimFacts } from '../cache/record-facts.ts';
import type { Ids } from '../decide/decision.ts';
import { claimKeyOf, findOrphanedReservations } from './reservation-identity.ts';
import { changeReservation, type ReservationRecord } from './reservation-record.ts';
import { CLAIMS, involvedClaim, refOf } from './write-claim.ts';

/** Dependencies of the audit of reserved addresses; one for each term of leadership. */
type ReservationAuditDeps = {
  readonly cloud: { readonly reservedIps: Pick<ReservedIpPort, 'find' | 'release'> };
  readonly kube: KubeClient;
  readonly claims: Pick<Informer<ClaimFacts>, 'values' | 'isSynced'>;
  readonly pods: Pick<Informer<PodFacts>, 'values' | 'isSynced'>;
  /** VPCs of the cluster's subnets. */
  readonly vpcIds: () => ReadonlySet<string>;
  /** Returns the subnet of an address: the cloud may not report it. */
  readonly subnetOf: (ip: string) => string | undefined;
  /** Tells whether the cluster may have reservations: without any, the cloud is not asked for them. */
  readonly mayHaveReservations: () => boolean;
  /** Tells whether claims were lost a short time ago: nothing is released then. */
  readonly isRebuilding: () => boolean;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: AuditEvents;
  readonly observe: ReservationAuditObserver;
  readonly settings: {
    readonly clusterId: string;
    readonly syncIntervalMs: number;
    readonly orphanGraceMs: number;
    readonly orphanLimit: number;
    readonly orphanDryRun: boolean;
    /** Of ipamd: events about orphaned reservations are recorded on it. */
    readonly namespace: string;
  };
};

/** Callback for each pass; the metrics use it. */
export type ReservationAuditObserver = { onOrphanReservations(count: number): void };

const CALL_MS = 120_000;

/**
 * Compares the reserved addresses of the cluster with its claims periodically. One that belongs to no claim any more
 * (the finalizer was taken off by hand, for example) is released as orphaned ENIs are.
 */
export class ReservationAudit {
  readonly #deps: ReservationAuditDeps;
  readonly #tracker = new OrphanTracker<ReservedIp>(({ reservationId }) => reservationId);
  /** Those of living claims without a record of them. */
  readonly #unrecorded = new OrphanTracker<ReservedIp>(({ reservationId }) => reservationId);

  constructor(deps: ReservationAuditDeps) {
    this.#deps = deps;
  }

  /** Runs one pass each interval until aborted; the first after one interval. Rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#deps.clock.sleep(this.#deps.settings.syncIntervalMs, signal);
      await this.#runOnce(signal);
    }
  }

  async #runOnce(signal: AbortSignal): Promise<void> {
    const { clock, log, settings, mayHaveReservations, observe } = this.#deps;
    try {
      if (!mayHaveReservations()) return;
      const all = await this.#sweep(signal);
      if (all === undefined) return;
      for (const one of this.#unrecorded.note(this.#unrecordedOf(all), clock.monotonicMs(), 0))
        await this.#record(one, signal);
      const orphans = this.#orphansOf(all);
      observe.onOrphanReservations(orphans.length);
      const ownCount = findOrphanedReservations(all, settings.clusterId, []).length;
      if (areTooMany(orphans.length, ownCount)) return this.#reportTooMany(orphans.length, ownCount);
      const due = this.#tracker.note(orphans, clock.monotonicMs(), settings.orphanGraceMs);
      for (const orphan of due.slice(0, settings.orphanLimit)) await this.#release(orphan, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('reserved addresses could not be described', { error: error.message });
    }
  }

  /** Lists the reservations of the cluster; undefined when the caches or the cloud's answer prove nothing. */
  async #sweep(signal: AbortSignal): Promise<readonly ReservedIp[] | undefined> {
    const { cloud, vpcIds, settings, log } = this.#deps;
    if (!this.#areCachesSynced()) return undefined;
    const tag = { key: RESERVATION_TAG.cluster, value: settings.clusterId };
    const all: ReservedIp[] = [];
    for (const vpcId of vpcIds()) {
      const { reservations, isConsistent } = await cloud.reservedIps.find(vpcId, { tag }, contextOf(signal));
      if (!isConsistent) {
        log.warn('reserved addresses changed while they were listed; they are compared the next time', { vpcId });
        return undefined;
      }
      all.push(...reservations);
    }
    return this.#areCachesSynced() ? all : undefined;
  }

  #areCachesSynced(): boolean {
    return this.#deps.claims.isSynced && this.#deps.pods.isSynced;
  }

  /** A Pod that is to have a claim of a name takes up what is reserved for it. */
  #orphansOf(all: readonly ReservedIp[]): readonly ReservedIp[] {
    const { claims, pods, settings } = this.#deps;
    const ofClaims = [...claims.values()].filter(({ isRecord }) => !isRecord).map(({ key }) => key);
    const ofPods = [...pods.values()].filter(({ claimInfo }) => claimInfo !== undefined).map(podKeyOf);
    return findOrphanedReservations(all, settings.clusterId, [...ofClaims, ...ofPods]);
  }

  #unrecordedOf(all: readonly ReservedIp[]): readonly ReservedIp[] {
    const { claims, settings } = this.#deps;
    const lacking = [...claims.values()].filter(({ staticObject }) => {
      const claim = staticObject?.decoded;
      return claim !== undefined && claim.status?.reservation === undefined;
    });
    const keys = new Set(lacking.map(({ key }) => key));
    return findOrphanedReservations(all, settings.clusterId, []).filter(({ tags }) => keys.has(claimKeyOf(tags) ?? ''));
  }

  /** Writes into a claim what is reserved for it, when that was edited out of it, so that it ends with the claim. */
  async #record(one: ReservedIp, signal: AbortSignal): Promise<void> {
    const { cloud, kube, ids, events, log } = this.#deps;
    const { ip, vpcId: vpcID, reservationId: id } = one;
    const key = claimKeyOf(one.tags) ?? '';
    const { reservations } = await cloud.reservedIps.find(vpcID, { ip }, contextOf(signal));
    const [now] = this.#unrecordedOf(reservations.filter(({ reservationId }) => reservationId === id));
    const subnetID = now?.subnetId === '' ? this.#deps.subnetOf(ip) : now?.subnetId;
    if (subnetID === undefined) return;
    const base = { clientToken: ids.next(), vpcID, subnetID, ip, id };
    const fresh: ReservationRecord = { ...base, state: 'Reserved' };
    const written = await changeReservation(kube, key, (before) => before ?? fresh, signal).catch((error: unknown) => {
      if (!isKubeError(error)) throw error;
      log.warn('the reservation of a claim cannot be recorded', { claim: key, error });
    });
    if (written?.clientToken !== fresh.clientToken) return;
    const message = `status.reservation was lost; ${ip} (${id}) is reserved for this claim`;
    events.record({ involved: involvedClaim(key, undefined), type: 'Warning', reason: 'ObjectMended', message });
  }

  #reportTooMany(orphans: number, all: number): void {
    this.#tracker.clear();
    const text = `${orphans} of the ${all} reserved addresses that ipamd made for this cluster seem to belong to no claim; none is released. Were VpcIPClaims lost, or is --clusterid that of another cluster?`;
    this.#report('Warning', 'OrphanReservation', text);
  }

  /** Releases an orphan unless a resource has its address; what is known of it is read once more before. */
  async #release(orphan: ReservedIp, signal: AbortSignal): Promise<void> {
    const { cloud, log, settings, isRebuilding } = this.#deps;
    const { ip, reservationId, vpcId, tags, boundTo } = orphan;
    const what = `reserved address ${ip} (${reservationId}), made for ${tags[RESERVATION_TAG.claim] ?? ''},`;
    const tell = (why: string): void =>
      this.#report('Warning', 'OrphanReservation', `${what} belongs to no claim${why}`);
    if (boundTo !== undefined) return tell(`, and ${boundTo} has the address; it is released when that is not so`);
    if (isRebuilding()) return;
    if (settings.orphanDryRun) return tell(': dry run');
    try {
      const { reservations } = await cloud.reservedIps.find(vpcId, { ip }, contextOf(signal));
      if (await this.#hasClaim(orphan, signal)) return;
      const [now] = this.#orphansOf(reservations.filter((one) => one.reservationId === reservationId));
      if (now === undefined || now.boundTo !== undefined || !this.#areCachesSynced()) return;
      await cloud.reservedIps.release(vpcId, reservationId, contextOf(signal));
      log.info('orphaned reservation released', { reservationId, ip });
      this.#report('Normal', 'OrphanReservationReleased', `${what} belonged to no claim and is released`);
    } catch (error) {
      signal.throwIfAborted();
      if (isKubeError(error)) return log.warn('the claim of an orphaned reservation cannot be read', { what, error });
      if (!isCloudError(error)) throw error;
      if (error.retry !== 'gone') tell(` and could not be released: ${error.message}`);
    }
  }

  /** Reads the claim of the tag from the API server: a broken list lacks claims that exist. */
  async #hasClaim({ tags }: ReservedIp, signal: AbortSignal): Promise<boolean> {
    const key = claimKeyOf(tags);
    if (key === undefined) return false;
    const claim = await this.#deps.kube.get(CLAIMS, refOf(key), signal);
    return claim !== undefined && claim.metadata.labels?.[RECORD_LABEL.key] !== RECORD_LABEL.value;
  }

  #report(
    type: 'Normal' | 'Warning',
    reason: 'OrphanReservation' | 'OrphanReservationReleased',
    message: string,
  ): void {
    const involved = { apiVersion: 'v1', kind: 'Namespace', name: this.#deps.settings.namespace };
    this.#deps.events.record({ involved, type, reason, message });
  }
}

/** Builds the context of a call: lowest priority, because no Pod waits for it. */
function contextOf(signal: AbortSignal): CallContext {
  return { priority: 'gc', owner: 'audit', signal, timeoutMs: CALL_MS };
}
