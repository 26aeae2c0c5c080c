import type { NecFacts, NodeTraits } from './facts.ts';
import type { NodeCapacity } from './node-capacity.ts';
import type { PodRequest } from './pod-request.ts';

/** A number of addresses that a node still needs, from one of these subnets; undefined: from any subnet of the node. */
export type AddressRequest = { readonly count: number; readonly subnetIds: readonly string[] | undefined };

/** The addresses of a node, the addresses that it still needs for its Pods, and the subnets that more may come from. */
export type NodeSupply = {
  readonly name: string;
  /**
   * Addresses for any Pod that are on the node or requested from the cloud, minus the Pods that have one or have one
   * reserved. Below zero: so many are missing.
   */
  readonly spare: number;
  /** How many addresses were missing when the subnets were charged: what `spare` was below zero by. */
  readonly shortfall: number;
  /** What is still missing for Pods that are bound or have a reservation. All of it must come from subnets. */
  readonly unmet: readonly AddressRequest[];
  /** Free capacity of its ENIs that serve new Pods now or will. */
  readonly enis: readonly { readonly subnetId: string; readonly free: number }[];
  /** How many more ENIs the node can have. */
  readonly moreEnis: number;
  readonly ipsPerEni: number;
  readonly zone: string;
  /** The only subnets for its new ENIs; empty: the subnets of the cluster. */
  readonly subnetIds: readonly string[];
  /** A key that is equal for nodes whose addresses come from the same subnets in the same way. */
  readonly sources: string;
};

/** The Pods and reservations of a node, and a look-up of static addresses. */
export type SupplyInput = {
  readonly pods: Iterable<PodRequest>;
  readonly reserved: Iterable<Pick<PodRequest, 'key' | 'isStatic' | 'routeIps'>>;
  /**
   * Returns the subnets that a static address may come from; `exists`: the address exists in the cloud, on another
   * node.
   */
  readonly staticSourceOf: (key: string) => {
    readonly exists: boolean;
    readonly subnetIds: readonly string[] | undefined;
  };
};

/** Computes the address supply of a node; undefined when its limits are not known. */
export function supplyOf(
  nec: NecFacts,
  node: NodeTraits | undefined,
  capacity: NodeCapacity,
  input: SupplyInput,
): NodeSupply | undefined {
  const { ipsPerEni } = nec;
  const { maxEnis, moreEnis } = capacity;
  if (ipsPerEni === undefined || maxEnis === undefined) return undefined;
  const pods = [...input.pods];
  const shared = nec.enis.filter(({ isShared }) => isShared);
  const serving = shared.filter(({ isServing }) => isServing);
  const coming = nec.pendingEnis.reduce((sum, one) => sum + one.plain, 0);
  const plain = serving.reduce((sum, eni) => sum + eni.plain, coming);
  const spare = plain + usedElsewhere(shared, serving, pods) - capacity.plainUsed;
  const assignedKeys = new Set(shared.flatMap(({ claims }) => claims));
  const keys = new Set<string>();
  for (const { key, isStatic, routeIps } of [...pods, ...input.reserved])
    if (isStatic && routeIps > 0 && !assignedKeys.has(key)) keys.add(key);
  // Sorted: what is owed is placed one after the other, and the order must not be that in which Pods were heard of.
  const missingStatic = [...keys]
    .sort()
    .map(input.staticSourceOf)
    .filter(({ exists }) => !exists);
  const enis = [
    ...serving.map(({ subnetId, ips, requested }) => ({ subnetId, free: ipsPerEni - ips.length - requested })),
    ...nec.pendingEnis.map(({ subnetId, ips }) => ({ subnetId, free: ipsPerEni - ips })),
  ].filter((eni) => eni.free > 0);
  const subnetIds = nec.subnetIds.length > 0 ? nec.subnetIds : (node?.subnetIds ?? NONE);
  const ofEnis = enis.map(({ subnetId }) => subnetId).join();
  return {
    name: nec.name,
    spare,
    shortfall: Math.max(0, -spare),
    unmet: [
      ...missingStatic.map((one) => ({ count: 1, subnetIds: one.subnetIds })),
      ...(spare < 0 ? [{ count: -spare, subnetIds: undefined }] : []),
    ],
    enis,
    moreEnis,
    ipsPerEni,
    zone: nec.zone,
    subnetIds,
    sources: [ofEnis, nec.zone, subnetIds.join(), moreEnis > 0 ? '+' : ''].join(' '),
  };
}

const NONE: readonly string[] = [];

/**
 * Counts Pods on shared ENIs that no longer serve new Pods: they stay there, with addresses that no other Pod can get.
 */
function usedElsewhere(
  shared: NecFacts['enis'],
  serving: NecFacts['enis'],
  pods: readonly Pick<PodRequest, 'isStatic' | 'ips'>[],
): number {
  if (shared.length === serving.length) return 0;
  const inUse = new Set(pods.filter(({ isStatic }) => !isStatic).flatMap(({ ips }) => ips));
  const others = shared.filter(({ isServing }) => !isServing);
  return others.flatMap(({ ips }) => ips).filter((ip) => inUse.has(ip)).length;
}
