import { freeSharedEnis, maxSharedEnis } from '../../crd/eni-places.ts';
import type { EniFacts, NecFacts } from './facts.ts';
import type { PodRequest } from './pod-request.ts';
import type { Reservation } from './reservation.ts';

/** Capacity of one kind on a node: the limit, and how much of it is used. */
export type Capacity = {
  /** Undefined: the limit is not known, and nothing is refused for it. */
  readonly limit: number | undefined;
  readonly used: number;
  /** Claims that use a part of the capacity, whether their Pod exists or not. */
  readonly keys: ReadonlySet<string>;
};

/** One ENI that serves new Pods, and how many more Pods its addresses can serve. */
export type EniCapacity = { readonly subnetId: string; readonly left: number };

/** The capacity of a node, of each kind. */
export type NodeCapacity = {
  readonly route: Capacity;
  readonly exclusive: Capacity;
  readonly eip: Capacity;
  /** Shared ENIs that serve Pods or will, their limit, and how many more the node can have. */
  readonly enis: number;
  readonly maxEnis: number | undefined;
  readonly moreEnis: number;
  /** Of the used capacity of shared ENIs: what Pods without a static address use. */
  readonly plainUsed: number;
};

/** The Pods on a node and the reservations on it. */
type NodeLoad = {
  readonly pods: Iterable<PodRequest>;
  /** Valid reservations: not expired, and not of a Pod that is already bound. */
  readonly reservations: Iterable<Reservation>;
};

const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * Computes the capacity of a node. For shared ENIs: the limit of the node, reduced to what its subnets allow, less one
 * address for each Pod, each static address on the node and each reservation. A claim that is several of these counts
 * once.
 */
export function nodeCapacityOf(nec: NecFacts, { pods, reservations }: NodeLoad): NodeCapacity {
  const shared = nec.enis.filter(({ isShared }) => isShared);
  const routeKeys = new Set(shared.flatMap(({ claims }) => claims));
  const exclusive = nec.enis.filter(({ isShared }) => !isShared);
  const exclusiveKeys = new Set(exclusive.flatMap(({ claims }) => claims));
  const counted = { route: 0, exclusive: 0, eip: 0 };
  const count = (demand: Pick<PodRequest, 'key' | 'isStatic' | 'routeIps' | 'exclusiveEnis' | 'eips'>): void => {
    counted.eip += demand.eips;
    if (demand.isStatic && demand.routeIps > 0) routeKeys.add(demand.key);
    else counted.route += demand.routeIps;
    if (demand.isStatic && demand.exclusiveEnis > 0) exclusiveKeys.add(demand.key);
    else counted.exclusive += demand.exclusiveEnis;
  };
  for (const pod of pods) count(pod);
  for (const { demand } of reservations) count(demand);
  const routeUsed = counted.route + Math.max(routeKeys.size, nec.staticIps);
  const exclusiveUsed = counted.exclusive + exclusiveKeys.size;
  // Exclusive ENIs that Pods will get take places as well as those that are there.
  const promised = Math.max(0, exclusiveUsed - nec.places.exclusive);
  const maxEnis = nec.maxEnis === undefined ? undefined : maxSharedEnis(nec.places, promised);
  return {
    route: { limit: routeLimit(nec, maxEnis, shared), used: routeUsed, keys: orNoKeys(routeKeys) },
    exclusive: { limit: exclusiveLimit(nec, routeUsed), used: exclusiveUsed, keys: orNoKeys(exclusiveKeys) },
    eip: { limit: nec.maxEips, used: counted.eip, keys: NO_KEYS },
    enis: nec.places.serving,
    maxEnis,
    moreEnis: maxEnis === undefined ? 0 : freeSharedEnis(nec.places, promised),
    plainUsed: counted.route,
  };
}

/** Most nodes have no such claim, and an empty Set takes 200 bytes. */
function orNoKeys(keys: ReadonlySet<string>): ReadonlySet<string> {
  return keys.size === 0 ? NO_KEYS : keys;
}

/** Computes how many Pods that need a particular subnet each shared ENI can still take that serves, or will. */
export function eniCapacitiesOf(nec: NecFacts, pods: Iterable<PodRequest>): readonly EniCapacity[] {
  const inUse = new Set([...pods].filter(({ isStatic }) => !isStatic).flatMap(({ ips }) => ips));
  const { ipsPerEni = 0 } = nec;
  const serving = nec.enis.filter(({ isShared, isServing }) => isShared && isServing);
  return [
    ...serving.map((eni) => ({ subnetId: eni.subnetId, left: ipsPerEni - eni.claims.length - usedOf(eni, inUse) })),
    ...nec.pendingEnis.map(({ subnetId }) => ({ subnetId, left: ipsPerEni })),
  ];
}

function usedOf({ ips }: EniFacts, inUse: ReadonlySet<string>): number {
  return ips.filter((ip) => inUse.has(ip)).length;
}

/** Returns the address limit of shared ENIs. A node without published limits has the addresses that are on its ENIs. */
function routeLimit(
  { ipsPerEni, allocatable }: NecFacts,
  maxEnis: number | undefined,
  shared: readonly EniFacts[],
): number {
  const limit = maxEnis === undefined || ipsPerEni === undefined ? undefined : maxEnis * ipsPerEni;
  if (limit === undefined) return allocatable ?? shared.reduce((sum, { ips }) => sum + ips.length, 0);
  return Math.min(limit, allocatable ?? limit);
}

/** Returns the limit of exclusive ENIs. Shared ENIs that the Pods of the node need take standard places too. */
function exclusiveLimit({ maxExclusiveEnis: maxDirectEnis, ipsPerEni, places }: NecFacts, routeUsed: number): number {
  const { standard, extension, used, exclusiveOnStandard } = places;
  if (standard === undefined || extension > 0) return maxDirectEnis;
  const needed = ipsPerEni === undefined || ipsPerEni === 0 ? 0 : Math.ceil(routeUsed / ipsPerEni);
  const shared = Math.max(used - exclusiveOnStandard, needed);
  return Math.min(maxDirectEnis, Math.max(0, standard - shared));
}
