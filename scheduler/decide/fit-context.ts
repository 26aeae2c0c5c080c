import type { PodRequest } from '../index/pod-request.ts';
import type { Reservation } from '../index/reservation.ts';
import type { NodeEntry, SchedulerIndex, StaticAddress } from '../index/scheduler-index.ts';
import type { SubnetAvailability } from '../index/subnet-availability.ts';
import type { NameLookup } from '../index/subnet-index.ts';

/** The context of a fit decision: everything about one Pod that nodes are evaluated with. */
export type FitContext = {
  readonly demand: PodRequest;
  /** The static address of the Pod and its location; undefined for a Pod without one. */
  readonly staticAddress: StaticAddress | undefined;
  /** The subnets that the Pod or its claim accepts, with their zones where they are known; undefined: any subnet. */
  readonly nominated: readonly NominatedSubnet[] | undefined;
  /** The subnets of which an ENI must be in one; undefined: any subnet of the node. */
  readonly subnetIds: readonly string[] | undefined;
  /** The reservation that the Pod already has. The capacity it counts is the Pod's own. */
  readonly reservation: Reservation | undefined;
  /**
   * For each subnet that an address of the Pod may come from: the nodes with an ENI in it; undefined: any subnet is
   * accepted.
   */
  readonly nodesInSubnets: readonly NameLookup[] | undefined;
  /** Nodes that already have the static address, or the static exclusive ENI, of the Pod. */
  readonly holders: ReadonlySet<string>;
  /**
   * The zone of the static address; undefined without one, and when a node of another zone already has the address. Nodes
   * with another `staticZone` cannot take the Pod.
   */
  readonly onlyZone: string | undefined;
  /**
   * What in the entry of a node may show at once that the node fits, as it does for most Pods and nodes. `freeIps`: the Pod
   * requests any addresses on shared ENIs and nothing else. `staticIp`: its address exists, is requested with nothing else,
   * and comes to any node of its zone that has capacity. Undefined: each node is checked in full.
   */
  readonly shortcut: 'freeIps' | 'staticIp' | undefined;
  /** The addresses that subnets have left; undefined until ipamd has published them. */
  readonly availability: SubnetAvailability | undefined;
  /** Reasons by `NodeSupply.sources`; each is rendered once. Begins empty. */
  readonly reasonsBySources: Map<string, string>;
};

/** A subnet that a Pod accepts; `zone` is undefined while no node has an ENI in it. */
export type NominatedSubnet = { readonly subnetId: string; readonly zone: string | undefined };

/** The reason why a node cannot take a Pod. */
export type Refusal = {
  /** Text for the events of the Pod; equal for nodes that refuse for the same reason with the same numbers. */
  readonly reason: string;
  /** True when no eviction on the node would change it. */
  readonly isUnresolvable: boolean;
  /** True when cloud calls for this node are pending: the answer may change within moments. */
  readonly isTransient: boolean;
};

function subnetsOf(
  { isStatic }: PodRequest,
  staticAddress: StaticAddress | undefined,
  nominated: readonly NominatedSubnet[] | undefined,
): readonly string[] | undefined {
  if (isStatic && staticAddress?.subnetId !== undefined) return [staticAddress.subnetId];
  return nominated?.map(({ subnetId }) => subnetId);
}

function shortcutOf(demand: PodRequest, takesAnySubnet: boolean, isAddressThere: boolean): FitContext['shortcut'] {
  if (demand.exclusiveEnis > 0 || demand.eips > 0) return undefined;
  if (!demand.isStatic) return takesAnySubnet ? 'freeIps' : undefined;
  return isAddressThere ? 'staticIp' : undefined;
}

/** Reports whether the static address, or the static exclusive ENI, of the Pod is already on a node. */
export function hasStaticAddress({ demand, holders }: FitContext, { name }: NodeEntry): boolean {
  return demand.isStatic && holders.size > 0 && holders.has(name);
}

/** Builds the context that all nodes are evaluated with for one Pod. The index is read once, not once for each node. */
export function buildFitContext(index: SchedulerIndex, demand: PodRequest): FitContext {
  const claim = demand.isStatic ? index.claim(demand.key) : undefined;
  const ids = demand.nominatedSubnetIds ?? claim?.nominatedSubnetIds;
  const staticAddress = demand.isStatic ? index.staticAddressOf(demand) : undefined;
  const nominated = ids?.map((subnetId) => ({ subnetId, zone: index.zoneOf(subnetId) }));
  const subnetIds = subnetsOf(demand, staticAddress, nominated);
  const holders = index.holdersOf(demand.key);
  const zone = staticAddress?.ip === undefined ? undefined : staticAddress.zone;
  const isInZone = [...holders].every((name) => ['', zone].includes(index.node(name)?.staticZone ?? ''));
  const onlyZone = isInZone ? zone : undefined;
  return {
    demand,
    staticAddress,
    nominated,
    subnetIds,
    shortcut: shortcutOf(demand, ids === undefined, onlyZone !== undefined && holders.size > 0),
    nodesInSubnets: subnetIds?.map((subnetId) => index.nodesIn(subnetId)),
    holders,
    onlyZone,
    reservation: index.reservationOf(demand.uid),
    availability: index.availability(),
    reasonsBySources: new Map(),
  };
}
