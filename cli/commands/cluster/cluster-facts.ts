import type { Eni, Subnet } from '../../../cloud/cloud.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';

/** Result of one read of cluster and cloud. A list for which permission is missing contains the reason instead. */
export type ClusterFacts = {
  /** Wall clock at the start of the read; milliseconds since the epoch. */
  readonly takenAtMs: number;
  readonly necs: readonly ClusterNec[];
  readonly nodes: Known<readonly ClusterNode[]>;
  /** Pods with their own network that have not completed. */
  readonly pods: Known<readonly ClusterPod[]>;
  readonly vips: Known<readonly ClusterVip[]>;
  readonly claims: Known<readonly ClusterClaim[]>;
  readonly venis: Known<readonly ClusterVeni[]>;
  readonly eips: Known<readonly ClusterEip[]>;
  /** Undefined when the cloud was not requested. */
  readonly cloud: Known<CloudFacts> | undefined;
};

/** Fields of every object. Times are milliseconds since the epoch, 0 when not known. */
export type Identity = {
  /** `name` or `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly createdMs: number;
  /** When its deletion was requested; undefined when it is not being deleted. */
  readonly deletionRequestedMs: number | undefined;
  readonly finalizers: readonly string[];
};

/** A NodeENIConfig, as far as it can be decoded. */
export type ClusterNec = Identity & {
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /** Addresses that are published as targets of load balancers. */
  readonly registeredIps?: readonly string[];
  /** Malformed fields, as 'path: expected …'. */
  readonly faults: readonly string[];
  /** Settings that users made by annotations, as 'name=value' without the product's prefix. */
  readonly settings: readonly string[];
};

/** A Node. */
export type ClusterNode = Identity & {
  readonly isReady: boolean;
  /** Keys of its taints that go when its agent serves. While it has one, Pods are kept off the node. */
  readonly taints: readonly string[];
  readonly podCidrs: readonly string[];
  /** Its condition NetworkUnavailable, by which a controller of routes tells whether the VPC leads the podCIDR to it. */
  readonly network: { readonly isUnavailable: boolean; readonly reason: string; readonly message: string } | undefined;
  /** Settings by annotations, as in ClusterNec.settings. */
  readonly settings: readonly string[];
};

/** A Pod. */
export type ClusterPod = Identity & {
  readonly nodeName: string;
  /** Addresses in canonical form. */
  readonly ips: readonly string[];
  /** True when a container requests an address of an ENI as a resource, as the webhook has it do. */
  readonly asksEniIp: boolean;
};

/** A VpcIP. */
export type ClusterVip = Identity & {
  /** True for the primary address of an ENI, which no Pod gets. */
  readonly isEnis: boolean;
  readonly ip: string;
  /** `namespace/name` of the Pod, '' when the VpcIP names none. */
  readonly podKey: string;
  /** Uid of the Pod; '' while the address is retained for a Pod that does not exist. */
  readonly podUid: string;
  /** True for a record that ipamd writes, as ClusterClaim.isRecord. */
  readonly isRecord: boolean;
  readonly subnetId: string;
  readonly nodeName: string;
  readonly eniId: string;
  readonly intents: readonly WorkIntent[];
};

/** A VpcIPClaim; its key is the Pod's. */
export type ClusterClaim = Identity & {
  readonly podUid: string;
  /** True when the claim is retained after its Pod is deleted. */
  readonly isRetained: boolean;
  /** True for a record that ipamd writes for a Pod without a static address. */
  readonly isRecord: boolean;
  readonly ips: readonly string[];
  readonly nodeName: string;
} & ClaimStatus;

/** Status of a claim. */
export type ClaimStatus = {
  readonly phase: string;
  /** What the claim waits for, or what is wrong; '' for neither. */
  readonly message: string;
  /** Last transition of its condition Ready; 0 when not known. */
  readonly sinceMs: number;
  /** Since when it has been retained for a Pod of its name; undefined while it has a Pod. */
  readonly retainedMs: number | undefined;
};

/** A VpcENI. */
export type ClusterVeni = Identity & {
  readonly nodeName: string;
  readonly eniId: string;
  /** `namespace/name` of the Pod, '' when the ENI is for no Pod. */
  readonly podKey: string;
  readonly isRetained: boolean;
  readonly isExclusive: boolean;
  readonly phase: string;
  readonly intents: readonly WorkIntent[];
};

/** An EIPClaim; its key is the Pod's. */
export type ClusterEip = Identity & {
  readonly isRetained: boolean;
  readonly publicIp: string;
  readonly nodeName: string;
  readonly intents: readonly WorkIntent[];
} & ClaimStatus;

/** A cloud call that is in flight. */
export type WorkIntent = {
  readonly id: string;
  readonly action: string;
  readonly phase: string;
  readonly recordedMs: number;
  readonly resourceName: string;
  readonly eniId: string;
  readonly tries: number;
  /** Last error as 'Code: message', '' when no try failed. */
  readonly lastError: string;
};

/** ENIs and subnets of this cluster in the cloud. */
export type CloudFacts = {
  /**
   * Cluster id in the tags of ENIs; undefined when it is neither given nor found. Orphaned ENIs cannot be detected
   * then.
   */
  readonly clusterId: string | undefined;
  readonly enis: readonly Eni[];
  /** False when the cloud changed while it was read. An ENI that is missing in the list may exist then. */
  readonly isConsistent: boolean;
  readonly subnets: readonly Subnet[];
};
