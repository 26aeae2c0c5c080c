import type { NecFacts, NodeFacts } from './facts.ts';
import type { NodeRoom } from './node-room.ts';
import type { PodDemand } from './pod-demand.ts';

/** So many addresses that a node has not yet, of one of these subnets; undefined: of any of the node's. */
export type Ask = { readonly count: number; readonly subnetIds: readonly string[] | undefined };

/** What a node has of addresses, what it owes its Pods, and where more may come from. */
export type NodeSupply = {
  readonly name: string;
  /** Addresses on it, or asked for, that are for any Pod, less Pods that have or are promised one; below zero: it owes some. */
  readonly spare: number;
  /** How many of these it owes: what `spare` was below zero by when subnets were charged. */
  readonly debt: number;
  /** What it owes for Pods that are bound or promised a place: all of that has to come from subnets. */
  readonly owed: readonly Ask[];
  /** Room on its ENIs that serve or will. */
  readonly enis: readonly { readonly subnetId: string; readonly room: number }[];
  /** Further ENIs that it can have. */
  readonly moreEnis: number;
  readonly ipsPerEni: number;
  readonly zone: string;
  /** The only subnets of its new ENIs; empty: the cluster's. */
  readonly subnetIds: readonly string[];
  /** Equal for nodes whose addresses come from the same subnets in the same way. */
  readonly sources: string;
};

/** Who on the node keeps an address, or is to. */
export type Keepers = {
  readonly pods: Iterable<PodDemand>;
  readonly promised: Iterable<Pick<PodDemand, 'key' | 'isStatic' | 'routeIps'>>;
  /** Returns the subnets that a kept address has to be of; `isThere`: it is in the cloud, on another node. */
  readonly keptOf: (key: string) => { readonly isThere: boolean; readonly subnetIds: readonly string[] | undefined };
};

/** Counts a node's addresses; undefined where its limits are not known. Pure. */
export function supplyOf(
  nec: NecFacts,
  node: NodeFacts | undefined,
  room: NodeRoom,
  keepers: Keepers,
): NodeSupply | undefined {
  const { ipsPerEni, mostEnis } = nec;
  if (ipsPerEni === undefined || mostEnis === undefined) return undefined;
  const pods = [...keepers.pods];
  const shared = nec.enis.filter(({ isShared }) => isShared);
  const serving = shared.filter(({ isServing }) => isServing);
  const coming = nec.comingEnis.reduce((sum, { ips }) => sum + ips, 0);
  const plain = serving.reduce((sum, eni) => sum + eni.plain, coming);
  const spare = plain + usedElsewhere(shared, serving, pods) - room.plainTaken;
  const marked = new Set(shared.flatMap(({ claims }) => claims));
  const keys = new Set<string>();
  for (const { key, isStatic, routeIps } of [...pods, ...keepers.promised])
    if (isStatic && routeIps > 0 && !marked.has(key)) keys.add(key);
  const kept = [...keys].map(keepers.keptOf).filter(({ isThere }) => !isThere);
  const enis = [
    ...serving.map(({ subnetId, ips, asked }) => ({ subnetId, room: ipsPerEni - ips.length - asked })),
    ...nec.comingEnis.map(({ subnetId, ips }) => ({ subnetId, room: ipsPerEni - ips })),
  ].filter((eni) => eni.room > 0);
  const moreEnis = Math.max(0, mostEnis - shared.length - nec.comingEnis.length);
  const subnetIds = nec.subnetIds.length > 0 ? nec.subnetIds : (node?.subnetIds ?? NONE);
  const ofEnis = enis.map(({ subnetId }) => subnetId).join();
  return {
    name: nec.name,
    spare,
    debt: Math.max(0, -spare),
    owed: [
      ...kept.map((one) => ({ count: 1, subnetIds: one.subnetIds })),
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

/** Pods stay on an ENI that drains, with addresses that are for nobody else. */
function usedElsewhere(
  shared: NecFacts['enis'],
  serving: NecFacts['enis'],
  pods: readonly Pick<PodDemand, 'isStatic' | 'ips'>[],
): number {
  if (shared.length === serving.length) return 0;
  const inUse = new Set(pods.filter(({ isStatic }) => !isStatic).flatMap(({ ips }) => ips));
  const others = shared.filter(({ isServing }) => !isServing);
  return others.flatMap(({ ips }) => ips).filter((ip) => inUse.has(ip)).length;
}
