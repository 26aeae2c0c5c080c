import { isCloudError } from '../../../cloud/cloud-error.ts';
import type { OrphanKind } from '../../../cloud/orphan-sweep.ts';
import type { ReservedIp } from '../../../cloud/reserved-ips.ts';
import { claimTag } from '../../../crd/claim-tag.ts';
import { RESERVATION_TAG } from '../../../crd/cloud-tags.ts';
import { RECORD_LABEL } from '../../../crd/names.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { VPC_IP_CLAIMS } from '../../../kube/resource-types.ts';
import { recordOrphan, reportOrphan, type Sweep, sweepContext, sweepOf } from '../../audit/run-sweep.ts';
import type { NodeEntry } from '../../cache/node-entry.ts';
import { podKeyOf, refOfKey } from '../../cache/pod-facts.ts';
import type { ClaimFacts } from '../../cache/record-facts.ts';
import { isStaticNode } from '../../nodes/decide-policy.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { findSubnet } from './find-subnet.ts';
import { claimKeyOf, isReservedHere } from './reservation-identity.ts';
import { changeReservation, type ReservationRecord } from './reservation-record.ts';
import { vpcIdsOf } from './reservation-search.ts';
import { involvedClaim } from './write-claim.ts';

/**
 * Makes the sweep of the reserved addresses. Without a super node, the flag or a reservation that a claim names, the right
 * to describe reservations may be lacking.
 */
export function reservationSweep(term: ClaimsTerm): Sweep {
  const { config, nodes, claims, metrics } = term;
  const isServing = (node: NodeEntry): boolean => !node.isInstance && isStaticNode(node, config.enableStaticIp);
  const isNamed = ({ staticObject }: ClaimFacts): boolean => staticObject?.decoded?.status?.reservation !== undefined;
  return sweepOf(sweptReservations(term), {
    isWanted: () =>
      config.reserveKeptAddresses || [...nodes.values()].some(isServing) || [...claims.values()].some(isNamed),
    onSwept: (swept) => {
      if (swept.kind === 'done') metrics.orphanReservations.set(swept.orphans.length);
    },
  });
}

/**
 * Compares the reserved addresses of the cluster with its claims. One that belongs to no claim any more (the finalizer was
 * taken off by hand, for example) is released as orphaned ENIs are; one of a living claim that lost the record of it, in two
 * sweeps on end, is recorded again.
 */
function sweptReservations(deps: ClaimsTerm): OrphanKind<ReservedIp> {
  const { cloud, kube, log, claims, pods, definitions, config } = deps;
  const { clusterId } = config;
  const isSynced = (): boolean => claims.isSynced && pods.isSynced;
  let unrecorded: ReadonlySet<string> = new Set();
  return {
    skipMessage: 'reserved addresses could not be described',
    idOf: ({ reservationId }) => reservationId,
    list: async (context) => {
      const tag = { key: RESERVATION_TAG.cluster, value: clusterId };
      const all: ReservedIp[] = [];
      for (const vpcId of isSynced() ? vpcIdsOf(deps) : []) {
        const { reservations, isConsistent } = await cloud.reservedIps.find(vpcId, { tag }, context);
        if (!isConsistent) return 'SweepInconsistent';
        all.push(...reservations);
      }
      if (!isSynced()) return 'NotSynced';
      const lost = findUnrecorded(deps, all);
      for (const one of lost) {
        if (!unrecorded.has(one.reservationId)) continue;
        await recordAgain(deps, one, context.signal).catch((error: unknown) => {
          context.signal.throwIfAborted();
          if (!isKubeError(error) && !isCloudError(error)) throw error;
          // The next sweep tries again; the others are swept.
          log.warn('the reservation of a claim cannot be recorded', { claim: claimKeyOf(one.tags), error });
        });
      }
      unrecorded = new Set(lost.map(({ reservationId }) => reservationId));
      return all;
    },
    isOurs: (one) => isReservedHere(one, clusterId),
    ownerCheck: () => {
      if (!isSynced()) return undefined;
      const ofClaims = [...claims.values()].filter(({ isRecord }) => !isRecord).map(({ key }) => key);
      // A Pod that is to have a claim of a name takes up what is reserved for it.
      const ofPods = [...pods.values()].filter(({ claimInfo }) => claimInfo !== undefined).map(podKeyOf);
      const alive = new Set([...ofClaims, ...ofPods].map(claimTag));
      return ({ tags }) => alive.has(tags[RESERVATION_TAG.claim] ?? '');
    },
    limit: () => (definitions.wereLostLately ? 0 : config.orphanLimit),
    whyKept: ({ boundTo }) => boundTo && `${boundTo} has the address; it is released when that is not so`,
    lookAgain: async ({ reservationId, vpcId, ip, tags }, context) => {
      const { reservations } = await cloud.reservedIps.find(vpcId, { ip }, context);
      // A broken list lacks claims that exist.
      const key = claimKeyOf(tags);
      const claim = key === undefined ? undefined : await kube.get(VPC_IP_CLAIMS, refOfKey(key), context.signal);
      const isRecord = claim?.metadata.labels?.[RECORD_LABEL.key] === RECORD_LABEL.value;
      return claim === undefined || isRecord
        ? reservations.find((one) => one.reservationId === reservationId)
        : undefined;
    },
    remove: async ({ reservationId, vpcId, ip }, context) => {
      if (config.orphanDryRun) return { kind: 'later', why: 'dry run' };
      await cloud.reservedIps.release(vpcId, reservationId, context);
      log.info('orphaned reservation released', { reservationId, ip });
      return { kind: 'removed' };
    },
    report: ({ ip, reservationId, tags }, outcome) => {
      const what = `reserved address ${ip} (${reservationId}), made for ${tags[RESERVATION_TAG.claim] ?? ''},`;
      reportOrphan(deps, WORDS, what, outcome);
    },
    reportTooMany: ({ length }, ownCount) => {
      const text = `${length} of the ${ownCount} reserved addresses that ipamd made for this cluster seem to belong to no claim; none is released. Were VpcIPClaims lost, or is --clusterid that of another cluster?`;
      recordOrphan(deps, 'Warning', 'OrphanReservation', text);
    },
  };
}

const WORDS = {
  reasons: ['OrphanReservation', 'OrphanReservationReleased'],
  lacks: ['belongs to no claim', 'belonged to no claim'],
  removed: 'released',
} as const;

/** Finds the reservations of living claims without a record of them. */
function findUnrecorded({ claims, config }: ClaimsTerm, all: readonly ReservedIp[]): readonly ReservedIp[] {
  const lacking = [...claims.values()].filter(({ staticObject }) => {
    const claim = staticObject?.decoded;
    return claim !== undefined && claim.status?.reservation === undefined;
  });
  const keys = new Set(lacking.map(({ key }) => key));
  return all.filter((one) => isReservedHere(one, config.clusterId) && keys.has(claimKeyOf(one.tags) ?? ''));
}

/**
 * Writes into a claim what is reserved for it, when that was edited out of it, so that it ends with the claim.
 * @throws CloudError, KubeError
 */
async function recordAgain(deps: ClaimsTerm, one: ReservedIp, signal: AbortSignal): Promise<void> {
  const { cloud, kube, ids, events } = deps;
  const { ip, vpcId: vpcID, reservationId: id } = one;
  const key = claimKeyOf(one.tags) ?? '';
  const { reservations } = await cloud.reservedIps.find(vpcID, { ip }, sweepContext(signal));
  const [now] = findUnrecorded(
    deps,
    reservations.filter(({ reservationId }) => reservationId === id),
  );
  const subnetID = now?.subnetId === '' ? findSubnet(ip, deps.subnets.all()) : now?.subnetId;
  if (subnetID === undefined) return;
  const fresh: ReservationRecord = { clientToken: ids.next(), vpcID, subnetID, ip, id, state: 'Reserved' };
  const written = await changeReservation(kube, key, (before) => before ?? fresh, signal);
  if (written?.clientToken !== fresh.clientToken) return;
  const message = `status.reservation was lost; ${ip} (${id}) is reserved for this claim`;
  events.record({ involved: involvedClaim(key, undefined), type: 'Warning', reason: 'ObjectMended', message });
}
