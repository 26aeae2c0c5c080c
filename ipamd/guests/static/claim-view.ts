import type { Mutation } from '../../../crd/intent.ts';
import type { VpcIp } from '../../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import type { PodOwner } from '../../cache/pod-facts.ts';
import type { ClaimWait } from '../../decide/decision.ts';
import type { SubnetState } from '../../subnets/subnet-cache.ts';

/** An address or an exclusive ENI of a node with a claim's mark, as the node's NodeENIConfig contains it. */
export type ClaimLocation = {
  readonly nodeName: string;
  readonly eniId: string;
  readonly mode: 'route-eni' | 'direct-eni';
  readonly subnetId: string | undefined;
  /** The ENI is attached, and not being detached. */
  readonly isAttached: boolean;
  /** For an exclusive ENI its primary address. */
  readonly ip: string | undefined;
  readonly assignmentId: string | undefined;
  /** Its agent has released it, or the address was taken without the agent: it is being unassigned or moved. */
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

/** The live Pod with a claim's name that requests what the claim is for. */
export type ClaimPod = {
  /** The uid by which its node identifies it. */
  readonly uid: string;
  /** '' before it is scheduled. */
  readonly nodeName: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation with the address of a Pod on a super node, as it is. */
  readonly allocation?: string;
  /** The uid in the API, where it differs: of a mirror Pod. */
  readonly apiUid?: string;
  /** The address that it runs with already, by its status: its claim is of this one and no other. */
  readonly ip?: string;
  readonly rule: ClaimRule;
};

/** Settings of a Pod's claim: from its annotations, else from a StaticIPConfig, else the defaults. */
export type ClaimRule = {
  readonly mode: 'route-eni' | 'direct-eni';
  /** False: the claim belongs to one Pod, and ends with it. */
  readonly isStatic: boolean;
  /** Milliseconds; undefined: the flag decides. */
  readonly expiredMs?: number;
  readonly nominatedIp?: string;
  readonly subnetIds?: readonly string[];
  /** The only addresses that may be assigned, from a StaticIPConfig. */
  readonly pool?: readonly string[];
  readonly securityGroupIds?: readonly string[];
  /** The object that the claim ends with; only with --enable-ownerref. */
  readonly workload?: PodOwner;
  /** Faults of the annotations, for people. */
  readonly faults: readonly string[];
};

/** What claims need to know of a node. */
export type ClaimNode = {
  /** A Node object exists. */
  readonly exists: boolean;
  /** Pods of the node may have static addresses. */
  readonly enableStaticIp: boolean;
  /** A super node: it has no ENIs, and its virtual kubelet reads the address of a Pod from an annotation. */
  readonly isSuper?: true;
  /** Undefined while its instance is unknown. */
  readonly zone: string | undefined;
  /** Milliseconds since the Node was first not ready or missing; 0 while it is ready. */
  readonly unreachableForMs: number;
  /** Subnets in which it has an attached shared ENI with a free address slot. */
  readonly subnetsWithFreeSlots: ReadonlySet<string>;
};

/** Another holder of an address that a claim would have: another claim, or a Pod without one. */
export type IpHolder = { readonly kind: 'claim' | 'pod'; readonly key: string };

/** A conflict: the cloud has assigned the address to another resource. */
export type AddressConflict = { readonly message: string; readonly waitMs: number };

/** An address of a pool, and its subnet. */
export type FreeAddress = { readonly ip: string; readonly subnetId: string | undefined };

/** What a search for a free address depends on. */
export type PoolView = Pick<ClaimView, 'key' | 'subnetOf' | 'zoneOf' | 'holderOf' | 'isRegistered'>;

/** Everything that the decision about one claim depends on. Frozen data without a clock. */
export type ClaimView = {
  /** `namespace/name`. */
  readonly key: string;
  readonly claim: VpcIpClaim | undefined;
  /** VpcIPs that are bound to it. */
  readonly vips: readonly VpcIp[];
  readonly pod: ClaimPod | undefined;
  readonly locations: readonly ClaimLocation[];
  readonly calls: readonly ClaimCall[];
  readonly nodeOf: (name: string) => ClaimNode;
  /** Undefined for an unknown subnet. */
  readonly zoneOf: (subnetId: string) => string | undefined;
  /** Undefined for an address outside all known subnets. */
  readonly subnetOf: (ip: string) => string | undefined;
  /** Reports whether a load balancer may still have the address, and no Pod has it. Default: no. */
  readonly isRegistered?: (ip: string) => boolean;
  /** Finds the first free address of a pool, as `findFreeAddress`, which is the default. */
  readonly findFree?: (view: PoolView, pool: readonly string[], zone: string | undefined) => FreeAddress | undefined;
  /** Undefined when the address has no other holder, as far as this cluster knows. */
  readonly holderOf: (ip: string) => IpHolder | undefined;
  /**
   * Why the claim waits on the node of its Pod, as the node's reconcile reports it; undefined when it does not wait.
   */
  readonly wait: ClaimWait | undefined;
  /** Present while an address is not requested again. */
  readonly conflict: AddressConflict | undefined;
  /** An exclusive ENI of the claim still exists, on a node or not. */
  readonly hasEni: boolean;
  /**
   * Milliseconds that its address has been Releasing elsewhere while the Pod's node was free to take it; 0 when it is
   * not.
   */
  readonly releasingForMs: number;
  /** Milliseconds that its address still rests before another name may have it; absent: it has rested. */
  readonly restMs?: number;
  /** Milliseconds since `status.retainedSince` of the claim, by a {@link StampAges}; 0 while it is not retained. */
  readonly retainedForMs: number;
  /** Subnets that ipamd knows; absent: none. */
  readonly subnets?: readonly SubnetState[];
  /** Reports whether an address may be reserved in a subnet for a Pod, which nominates the subnet or not. */
  readonly isOffered: (subnetId: string, isNominated: boolean) => boolean;
  /** The address of a claim without a Pod is reserved in the VPC instead of kept on an ENI. */
  readonly reservesStatic?: boolean;
  /** Why the address could not be reserved or released, for people. */
  readonly reservationProblem?: string;
  readonly defaultExpiredMs: number;
  readonly takeOverAfterMs: number;
  /** Wall clock as RFC 3339: for what is written into objects. */
  readonly nowText: string;
};
