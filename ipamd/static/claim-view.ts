import type { Mutation } from '../../crd/intent.ts';
import type { VpcIp } from '../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import type { PodOwner } from '../records/pod-facts.ts';

/** An address or an exclusive ENI of a node that carries a claim's mark, as the node's NodeENIConfig has it. */
export type Place = {
  readonly nodeName: string;
  readonly eniId: string;
  readonly mode: 'route-eni' | 'direct-eni';
  readonly subnetId: string | undefined;
  /** The ENI is attached, and not on its way off. */
  readonly isAttached: boolean;
  /** Of an exclusive ENI its primary one. */
  readonly ip: string | undefined;
  readonly assignmentId: string | undefined;
  /** Its agent has let go of it, or was passed over: it is on its way off the ENI. */
  readonly isReleasing: boolean;
  /** The only Pod that may use it now. */
  readonly podUid: string | undefined;
};

/** A cloud call for a claim that is recorded in the NodeENIConfig of a node. */
export type ClaimCall = {
  readonly nodeName: string;
  readonly action: Mutation;
  readonly ips: readonly string[];
};

/** The live Pod of a claim's name that asks for what the claim is for. */
export type ClaimPod = {
  /** As its node knows it. */
  readonly uid: string;
  /** '' before it is scheduled. */
  readonly nodeName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly rule: ClaimRule;
};

/** What a Pod's claim is to be like: its annotations, then a StaticIPConfig, then nothing. */
export type ClaimRule = {
  readonly mode: 'route-eni' | 'direct-eni';
  /** False: the claim is of one Pod, and ends with it. */
  readonly isKept: boolean;
  /** Milliseconds; undefined: as the flag says. */
  readonly expiredMs?: number;
  readonly nominatedIp?: string;
  readonly subnetIds?: readonly string[];
  /** The only addresses that are given, of a StaticIPConfig. */
  readonly pool?: readonly string[];
  readonly securityGroupIds?: readonly string[];
  /** The object whose end is the claim's; only with --enable-ownerref. */
  readonly workload?: PodOwner;
  /** What of the annotations could not be read, for people. */
  readonly faults: readonly string[];
};

/** What of a node matters to claims. */
export type NodeSight = {
  /** There is a Node object. */
  readonly exists: boolean;
  /** Pods of the node may keep their addresses. */
  readonly enableStaticIp: boolean;
  /** Undefined while its instance is not known. */
  readonly zone: string | undefined;
  /** Milliseconds since the Node was first seen not ready or gone; 0 while it is ready. */
  readonly unreachableForMs: number;
  /** Subnets in which it has an attached shared ENI with room for one more address. */
  readonly subnetsWithRoom: ReadonlySet<string>;
};

/** Who has an address that a claim would have: another claim, or a Pod without one. */
export type IpHolder = { readonly kind: 'claim' | 'pod'; readonly key: string };

/** An address that the cloud gave to somebody else. */
export type TakenIp = { readonly message: string; readonly untilMs: number };

/** Everything that the decision about one claim depends on; frozen data, no clock in it. */
export type ClaimView = {
  /** `namespace/name`. */
  readonly key: string;
  readonly claim: VpcIpClaim | undefined;
  /** VpcIPs that are bound to it. */
  readonly vips: readonly VpcIp[];
  readonly pod: ClaimPod | undefined;
  readonly places: readonly Place[];
  readonly calls: readonly ClaimCall[];
  readonly nodeOf: (name: string) => NodeSight;
  /** Undefined for a subnet that is not known. */
  readonly zoneOf: (subnetId: string) => string | undefined;
  /** Undefined for an address of no subnet that is known. */
  readonly subnetOf: (ip: string) => string | undefined;
  /** Undefined when nobody else has it, as far as this cluster knows. */
  readonly holderOf: (ip: string) => IpHolder | undefined;
  /** Why the node of its Pod does not get on with it, in the words of the node's turn; undefined when it does. */
  readonly wait: string | undefined;
  /** Present while an address is not asked for again. */
  readonly taken: TakenIp | undefined;
  /** An exclusive ENI of the claim is still there, on a node or not. */
  readonly hasEni: boolean;
  /** Milliseconds that its address is Releasing somewhere and the Pod's node is free to fetch it; 0 when it is not. */
  readonly releasingForMs: number;
  readonly defaultExpiredMs: number;
  readonly takeOverAfterMs: number;
  /** Wall clock, and the same as RFC 3339 has it. */
  readonly nowMs: number;
  readonly nowText: string;
};
