import type { Capacity, NodeCapacity } from '../index/node-capacity.ts';
import type { PodRequest } from '../index/pod-request.ts';
import type { Reservation } from '../index/reservation.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import { subnetRefusal } from './decide-subnets.ts';
import { type FitContext, hasStaticAddress, type NominatedSubnet, type Refusal } from './fit-context.ts';

/**
 * Decides whether a node fits a Pod: undefined when it does, else the reason. The answer holds only for this moment.
 */
export function decideFit(context: FitContext, view: NodeView | undefined): Refusal | undefined {
  const { demand } = context;
  const hasFreeCapacity = context.isPlain && view !== undefined && view.routeFree >= demand.routeIps;
  if (hasFreeCapacity && (context.availability === undefined || hasSpareIps(view, demand.routeIps))) return undefined;
  if (view?.node?.isSuper === true) return undefined;
  if (view?.nec === undefined || view.capacity === undefined) return NO_NEC;
  return (
    locationRefusal(context, view) ??
    routeRefusal(context, view, view.capacity) ??
    subnetRefusal(context, view, view.hasPendingCalls) ??
    directRefusal(demand, context.reservation, view, view.capacity) ??
    eipRefusal(demand, context.reservation, view, view.capacity)
  );
}

function hasSpareIps({ spare }: NodeView, need: number): boolean {
  return spare >= need;
}

const NO_NEC: Refusal = {
  reason: 'NoNodeENIConfig (no VPC-CNI node, or tke-eni-ipamd has not seen it yet)',
  isUnresolvable: false,
  isTransient: false,
};

/** Checks the location of the node (zone, subnets), without regard to the Pods on it. */
function locationRefusal(context: FitContext, view: NodeView): Refusal | undefined {
  const { demand, staticAddress, nominated } = context;
  const { nec } = view;
  if (nec === undefined || !demand.isStatic) return nominatedRefusal(nominated, view);
  if (!nec.isStatic) return unresolvable('StaticIPDisabled (enableStaticIP of its NodeENIConfig is not true)');
  if (hasStaticAddress(context, view)) return undefined;
  if (staticAddress?.ip === undefined) return nominatedRefusal(nominated, view);
  const { ip, subnetId, zone } = staticAddress;
  if (zone !== undefined && nec.zone !== '' && zone !== nec.zone) {
    context.otherZone.refusal ??= unresolvable(`OtherZone (kept address ${ip} is in ${zone})`);
    return context.otherZone.refusal;
  }
  if (nec.subnetIds.length > 0 && subnetId !== undefined && !isReachable(view, [subnetId])) {
    return unresolvable(`kept address ${ip} is of ${subnetId}, ENIs of the node are of ${nec.subnetIds.join(', ')}`);
  }
  return undefined;
}

/** Subnets of a Pod in a refusal, of which there is one for each node; the others are counted. */
const SHOWN = 3;

function shortened(subnetIds: readonly string[]): string {
  const more = subnetIds.length > SHOWN ? ` and ${subnetIds.length - SHOWN} more` : '';
  return `${subnetIds.slice(0, SHOWN).join(', ')}${more}`;
}

function nominatedRefusal(nominated: readonly NominatedSubnet[] | undefined, view: NodeView): Refusal | undefined {
  const { nec } = view;
  if (nominated === undefined || nec === undefined) return undefined;
  const inZone = nominated.filter(({ zone }) => zone === undefined || nec.zone === '' || zone === nec.zone);
  const named = `nominated ${shortened(nominated.map(({ subnetId }) => subnetId))}`;
  if (inZone.length === 0) {
    const zones = [...new Set(nominated.map(({ zone }) => zone))].join(', ');
    return unresolvable(`OtherZone (${named} is in ${zones})`);
  }
  const ids = inZone.map(({ subnetId }) => subnetId);
  return isReachable(view, ids)
    ? undefined
    : unresolvable(`${named}, ENIs of the node are of ${nec.subnetIds.join(', ')}`);
}

/** Tells whether a node can have an ENI in one of the subnets: it has one there, or its new ENIs may be made there. */
function isReachable({ nec }: NodeView, subnetIds: readonly string[]): boolean {
  if (nec === undefined || nec.subnetIds.length === 0) return true;
  return subnetIds.some((id) => nec.subnetIds.includes(id) || nec.enis.some((eni) => eni.subnetId === id));
}

function routeRefusal(context: FitContext, view: NodeView, capacity: NodeCapacity): Refusal | undefined {
  const { demand, subnetIds, reservation } = context;
  const need = demand.isStatic ? Math.min(1, demand.routeIps) : demand.routeIps;
  if (need === 0) return undefined;
  if (view.routeFree < need) {
    const ownUsage = ownUsageOf(demand, reservation, view, capacity.route, need);
    const short = shortage('InsufficientIPorENI', '', need, capacity.route, ownUsage);
    if (short !== undefined) return { reason: short, isUnresolvable: false, isTransient: view.hasPendingCalls };
  }
  if (hasStaticAddress(context, view)) return undefined;
  if (subnetIds === undefined) return undefined;
  const { enis, maxEnis, moreEnis } = capacity;
  if (maxEnis === undefined || moreEnis > 0) return undefined;
  if (view.eniCapacities.some(({ subnetId, left }) => left > 0 && subnetIds.includes(subnetId))) return undefined;
  const reason = `ENILimitExceed (${enis} of ${maxEnis} ENIs, none of ${shortened(subnetIds)} with room)`;
  return { reason, isUnresolvable: false, isTransient: view.hasPendingCalls };
}

function directRefusal(
  demand: PodRequest,
  reservation: Reservation | undefined,
  view: NodeView,
  capacity: NodeCapacity,
): Refusal | undefined {
  if (demand.directEnis === 0) return undefined;
  const need = demand.isStatic ? 1 : demand.directEnis;
  const ownUsage = ownUsageOf(demand, reservation, view, capacity.direct, need);
  const short = shortage('ENILimitExceed', ' exclusive ENIs', need, capacity.direct, ownUsage);
  return short === undefined ? undefined : { reason: short, isUnresolvable: false, isTransient: false };
}

function eipRefusal(
  demand: PodRequest,
  reservation: Reservation | undefined,
  view: NodeView,
  capacity: NodeCapacity,
): Refusal | undefined {
  if (demand.eips === 0) return undefined;
  const ownUsage = reservation?.nodeName === view.name ? reservation.demand.eips : 0;
  const short = shortage('InsufficientEIP', '', demand.eips, capacity.eip, ownUsage);
  return short === undefined ? undefined : { reason: short, isUnresolvable: false, isTransient: false };
}

/**
 * Counts how much of the used capacity belongs to this very Pod: by a reservation, or by its static address that is
 * already on the node.
 */
function ownUsageOf(
  demand: PodRequest,
  reservation: Reservation | undefined,
  view: NodeView,
  { keys }: Capacity,
  count: number,
): number {
  if (demand.isStatic) return keys.has(demand.key) ? 1 : 0;
  return reservation?.nodeName === view.name ? count : 0;
}

function shortage(
  code: string,
  unit: string,
  need: number,
  { limit, used }: Pick<Capacity, 'limit' | 'used'>,
  ownUsage: number,
): string | undefined {
  if (limit === undefined) return undefined;
  const free = limit - (used - ownUsage);
  return free >= need ? undefined : `${code} (need ${need}, free ${Math.max(0, free)} of ${limit}${unit})`;
}

function unresolvable(reason: string): Refusal {
  return { reason, isUnresolvable: true, isTransient: false };
}
