import type { EniFacts, NecFacts } from './facts.ts';
import type { PodDemand } from './pod-demand.ts';
import type { Reservation } from './reservation.ts';

/** Room of one kind on a node: how much there can be at most, and how much of it is taken. */
export type Room = {
  /** Undefined: not known, and limits nothing here. */
  readonly most: number | undefined;
  readonly taken: number;
  /** Claims that have a place among those taken, whether their Pod lives or not. */
  readonly keys: ReadonlySet<string>;
};

/** One ENI that serves, and how many more Pods its addresses can have. */
export type EniRoom = { readonly subnetId: string; readonly left: number };

/** What a node has left, of each kind. */
export type NodeRoom = {
  readonly route: Room;
  readonly direct: Room;
  readonly eip: Room;
  /** Shared ENIs on the instance, those that come and go included. */
  readonly enis: number;
  readonly mostEnis: number | undefined;
  /** Of the places taken on shared ENIs those of Pods that any address will do for. */
  readonly plainTaken: number;
};

/** Who is on a node, or is promised a place there. */
export type Tenants = {
  readonly pods: Iterable<PodDemand>;
  /** In force: not run out, and for no Pod that is bound already. */
  readonly reservations: Iterable<Reservation>;
};

const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * Counts what a node has left. Of shared ENIs: its limit, but no more than its subnets let it have, less a place for each
 * Pod, each kept address that is on it, and each reservation; a claim that is several of these has one place. Pure.
 */
export function roomOf(nec: NecFacts, { pods, reservations }: Tenants): NodeRoom {
  const shared = nec.enis.filter(({ isShared }) => isShared);
  const routeKeys = new Set(shared.flatMap(({ claims }) => claims));
  const exclusive = nec.enis.filter(({ isShared }) => !isShared);
  const directKeys = new Set(exclusive.flatMap(({ claims }) => claims));
  const counted = { route: 0, direct: 0, eip: 0 };
  const count = (demand: Pick<PodDemand, 'key' | 'isStatic' | 'routeIps' | 'directEnis' | 'eips'>): void => {
    counted.eip += demand.eips;
    if (demand.isStatic && demand.routeIps > 0) routeKeys.add(demand.key);
    else counted.route += demand.routeIps;
    if (demand.isStatic && demand.directEnis > 0) directKeys.add(demand.key);
    else counted.direct += demand.directEnis;
  };
  for (const pod of pods) count(pod);
  for (const { demand } of reservations) count(demand);
  const keptPlaces = Math.max(routeKeys.size, nec.staticPlaces);
  return {
    route: { most: routeMost(nec, shared), taken: counted.route + keptPlaces, keys: routeKeys },
    direct: { most: nec.mostDirectEnis, taken: counted.direct + directKeys.size, keys: directKeys },
    eip: { most: nec.mostEips, taken: counted.eip, keys: NO_KEYS },
    enis: shared.length,
    mostEnis: nec.mostEnis,
    plainTaken: counted.route,
  };
}

/** Counts what each serving shared ENI has left for Pods that want one of its subnet. Pure. */
export function eniRoomsOf(nec: NecFacts, pods: Iterable<PodDemand>): readonly EniRoom[] {
  const inUse = new Set([...pods].filter(({ isStatic }) => !isStatic).flatMap(({ ips }) => ips));
  const { ipsPerEni = 0 } = nec;
  return nec.enis
    .filter(({ isShared, isServing }) => isShared && isServing)
    .map((eni) => ({ subnetId: eni.subnetId, left: ipsPerEni - eni.claims.length - usedOf(eni, inUse) }));
}

function usedOf({ ips }: EniFacts, inUse: ReadonlySet<string>): number {
  return ips.filter((ip) => inUse.has(ip)).length;
}

/** A node whose limits are not written yet has what is on its ENIs. */
function routeMost({ mostEnis, ipsPerEni, allocatable }: NecFacts, shared: readonly EniFacts[]): number {
  const limit = mostEnis === undefined || ipsPerEni === undefined ? undefined : mostEnis * ipsPerEni;
  if (limit === undefined) return allocatable ?? shared.reduce((sum, { ips }) => sum + ips.length, 0);
  return Math.min(limit, allocatable ?? limit);
}
