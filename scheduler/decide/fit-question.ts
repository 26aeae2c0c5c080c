import type { PodDemand } from '../index/pod-demand.ts';
import type { Reservation } from '../index/reservation.ts';
import type { KeptAddress, NodeView } from '../index/scheduler-index.ts';
import type { Names } from '../index/subnet-book.ts';
import type { SubnetLedger } from '../index/subnet-ledger.ts';

/** Everything about one Pod that a node is judged by. */
export type FitQuestion = {
  readonly demand: PodDemand;
  /** Of a Pod that keeps its address: which, and where it is. */
  readonly kept: KeptAddress | undefined;
  /** The subnets that the Pod, or its claim, accepts, with their zones where they are known; undefined: any. */
  readonly nominated: readonly NominatedSubnet[] | undefined;
  /** What it is promised already: that place is its own. */
  readonly promise: Reservation | undefined;
  /** For each subnet that an address of it must be of: the nodes with an ENI there; undefined: any subnet will do. */
  readonly inSubnet: readonly Names[] | undefined;
  /** Nodes on which its kept address, or its exclusive ENI, is already. */
  readonly holders: ReadonlySet<string>;
  /** Refusals of whole zones, made once: there may be thousands of nodes in a zone. Begins empty. */
  readonly ofZones: Map<string, Refusal>;
  /** Asks for places on shared ENIs and for nothing else: so do most Pods, and most nodes have some. */
  readonly isPlain: boolean;
  /** What subnets have left; undefined while nobody told. */
  readonly ledger: SubnetLedger | undefined;
  /** Reasons by where addresses of nodes come from, made once. Begins empty. */
  readonly ofSubnets: Map<string, string>;
};

/** A subnet that a Pod accepts. */
export type NominatedSubnet = { readonly subnetId: string; readonly zone: string | undefined };

/** Why a node does not take a Pod. */
export type Refusal = {
  /** For the Pod's events; equal for nodes that refuse for the same reason with the same numbers. */
  readonly reason: string;
  /** No Pod that is taken off the node would change it. */
  readonly isUnresolvable: boolean;
  /** The cloud is at work on this very node: in a moment the answer may be another. */
  readonly isPassing: boolean;
};

/** Returns the subnets one of which an ENI must be of; undefined: any of the node's. Pure. */
export function subnetsOf(
  { isStatic }: PodDemand,
  kept: KeptAddress | undefined,
  nominated: readonly NominatedSubnet[] | undefined,
): readonly string[] | undefined {
  if (isStatic && kept?.subnetId !== undefined) return [kept.subnetId];
  return nominated?.map(({ subnetId }) => subnetId);
}

/** Tells whether the address, or the exclusive ENI, that is kept for a Pod is on a node already. Pure. */
export function isHolding({ demand, holders }: FitQuestion, { name }: NodeView): boolean {
  return demand.isStatic && holders.size > 0 && holders.has(name);
}
