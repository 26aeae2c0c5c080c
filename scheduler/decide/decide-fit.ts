import type { Capacity, NodeCapacity } from '../index/node-capacity.ts';
import type { AddressRequest, NodeSupply } from '../index/node-supply.ts';
import type { PodRequest } from '../index/pod-request.ts';
import type { Reservation } from '../index/reservation.ts';
import type { NodeEntry, StaticAddress } from '../index/scheduler-index.ts';
import type { SubnetAvailability } from '../index/subnet-availability.ts';
import { type FitContext, hasStaticAddress, type NominatedSubnet, type Refusal } from './fit-context.ts';

/**
 * Decides whether a node fits a Pod: undefined when it does, else the reason. The answer holds only for this moment.
 */
export function decideFit(context: FitContext, view: NodeEntry | undefined): Refusal | undefined {
  const { demand } = context;
  if (view !== undefined && fitsAtOnce(context, view)) return undefined;
  if (view?.node?.isSuper === true) return undefined;
  if (view?.nec === undefined || view.capacity === undefined) return NO_NEC;
  return (
    locationRefusal(context, view) ??
    routeRefusal(context, view, view.capacity) ??
    subnetRefusal(context, view, view.hasPendingCalls) ??
    exclusiveRefusal(demand, context.reservation, view, view.capacity) ??
    eipRefusal(demand, context.reservation, view, view.capacity)
  );
}

/** Reports whether the entry shows at once that the node fits; where it does not, the node may fit all the same. */
function fitsAtOnce({ shortcut, demand, availability, onlyZone }: FitContext, view: NodeEntry): boolean {
  switch (shortcut) {
    case 'freeIps':
      return view.routeFree >= demand.routeIps && (availability === undefined || view.spare >= demand.routeIps);
    case 'staticIp':
      return view.staticCapacity === onlyZone || view.staticCapacity === '';
    case undefined:
      return false;
  }
}

const NO_NEC: Refusal = {
  reason: 'NoNodeENIConfig (no VPC-CNI node, or tke-eni-ipamd has not seen it yet)',
  isUnresolvable: false,
  isTransient: false,
};

/** Renders why no node of another zone can take a static address. */
export function otherZoneReason({ ip, zone }: StaticAddress): string {
  return `OtherZone (kept address ${ip} is in ${zone})`;
}

/** Checks the location of the node (zone, subnets), without regard to the Pods on it. */
function locationRefusal(context: FitContext, view: NodeEntry): Refusal | undefined {
  const { demand, staticAddress, nominated } = context;
  const { nec } = view;
  if (nec === undefined || !demand.isStatic) return nominatedRefusal(nominated, view);
  if (!nec.isStatic) return unresolvable('StaticIPDisabled (enableStaticIP of its NodeENIConfig is not true)');
  if (hasStaticAddress(context, view)) return undefined;
  if (staticAddress?.ip === undefined) return nominatedRefusal(nominated, view);
  const { ip, subnetId, zone } = staticAddress;
  if (zone !== undefined && nec.zone !== '' && zone !== nec.zone) {
    return unresolvable(otherZoneReason(staticAddress));
  }
  if (nec.subnetIds.length > 0 && subnetId !== undefined && !isReachable(view, [subnetId])) {
    return unresolvable(`kept address ${ip} is of ${subnetId}, ENIs of the node are of ${nec.subnetIds.join(', ')}`);
  }
  return undefined;
}

/**
 * Subnets named in one refusal, of which there is one for each node; the others are counted. More would make the events of
 * Pods too long.
 */
const SHOWN = 3;

function shortened(subnetIds: readonly string[]): string {
  const more = subnetIds.length > SHOWN ? ` and ${subnetIds.length - SHOWN} more` : '';
  return `${subnetIds.slice(0, SHOWN).join(', ')}${more}`;
}

function nominatedRefusal(nominated: readonly NominatedSubnet[] | undefined, view: NodeEntry): Refusal | undefined {
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

/** Reports whether a node can have an ENI in one of the subnets: it has one there, or its new ENIs may be made there. */
function isReachable({ nec }: NodeEntry, subnetIds: readonly string[]): boolean {
  if (nec === undefined || nec.subnetIds.length === 0) return true;
  return subnetIds.some((id) => nec.subnetIds.includes(id) || nec.enis.some((eni) => eni.subnetId === id));
}

function routeRefusal(context: FitContext, view: NodeEntry, capacity: NodeCapacity): Refusal | undefined {
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

function exclusiveRefusal(
  demand: PodRequest,
  reservation: Reservation | undefined,
  view: NodeEntry,
  capacity: NodeCapacity,
): Refusal | undefined {
  if (demand.exclusiveEnis === 0) return undefined;
  const need = demand.isStatic ? 1 : demand.exclusiveEnis;
  const ownUsage = ownUsageOf(demand, reservation, view, capacity.exclusive, need);
  const short = shortage('ENILimitExceed', ' exclusive ENIs', need, capacity.exclusive, ownUsage);
  return short === undefined ? undefined : { reason: short, isUnresolvable: false, isTransient: false };
}

function eipRefusal(
  demand: PodRequest,
  reservation: Reservation | undefined,
  view: NodeEntry,
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
  view: NodeEntry,
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

/**
 * Decides whether a node can get the addresses for a Pod: from its free addresses, else from what its subnets have
 * left. A Pod with a static address needs a new address even if the node has free ones, unless its address exists
 * already. `isTransient` is true while cloud calls for the node are pending.
 */
function subnetRefusal(context: FitContext, view: NodeEntry, isTransient: boolean): Refusal | undefined {
  const { availability } = context;
  const { supply } = view;
  if (availability === undefined || supply === undefined) return undefined;
  const request = addressRequestOf(context, view, supply);
  if (request.count <= 0 || availability.canProvide(supply, request)) return undefined;
  const known = context.reasonsBySources.get(supply.sources);
  const reason = known ?? `InsufficientIPorENI (${renderSources(availability, supply, request)})`;
  if (known === undefined) context.reasonsBySources.set(supply.sources, reason);
  return { reason, isUnresolvable: false, isTransient };
}

function addressRequestOf(context: FitContext, view: NodeEntry, supply: NodeSupply): AddressRequest {
  const { demand, subnetIds, reservation, holders } = context;
  if (demand.routeIps === 0) return NOTHING;
  if (demand.isStatic) {
    // What any node holds is moved from there: it needs no other address.
    if (holders.size > 0 || view.capacity?.route.keys.has(demand.key) === true) return NOTHING;
    return { count: 1, subnetIds };
  }
  const ownUsage = reservation?.nodeName === view.name ? reservation.demand.routeIps : 0;
  // The node's own shortfall is already subtracted from its subnets. An eviction on the node first reduces that
  // shortfall.
  const count = Math.max(0, demand.routeIps - ownUsage - supply.spare) - supply.shortfall;
  return { count, subnetIds };
}

const NOTHING: AddressRequest = { count: 0, subnetIds: undefined };

function renderSources(availability: SubnetAvailability, supply: NodeSupply, { subnetIds }: AddressRequest): string {
  const sources = subnetIds ?? availability.sourcesOf(supply);
  if (sources.length === 0) return `no ENI with room, and no subnet in ${supply.zone} for another`;
  const shown = sources.slice(0, SHOWN).map((id) => renderSubnet(availability, supply, id));
  const more = sources.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? `, ${more} more subnets likewise` : ''}`;
}

function renderSubnet(availability: SubnetAvailability, supply: NodeSupply, id: string): string {
  const published = availability.supplyOf(id);
  if (published === undefined) return `${id} is not published by ipamd`;
  const left = availability.leftIn(id);
  const forEni = left > 0 && !supply.enis.some(({ subnetId }) => subnetId === id) ? ', a new ENI takes one itself' : '';
  return `${id} has ${left} of ${published.total} addresses left${forEni}`;
}
