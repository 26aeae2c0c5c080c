import type { Eni, Subnet } from '../../cloud/cloud.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Known } from '../node/node-facts.ts';

/** What one look at the cluster and the cloud told. Lists that may not be read say why. */
export type ClusterFacts = {
  /** Wall clock when the look began; milliseconds since the epoch. */
  readonly takenAtMs: number;
  readonly necs: readonly ClusterNec[];
  readonly nodes: Known<readonly ClusterNode[]>;
  /** Those with a network of their own that are not over. */
  readonly pods: Known<readonly ClusterPod[]>;
  readonly vips: Known<readonly ClusterVip[]>;
  readonly claims: Known<readonly ClusterClaim[]>;
  readonly venis: Known<readonly ClusterVeni[]>;
  readonly eips: Known<readonly ClusterEip[]>;
  /** Undefined when it was not asked. */
  readonly cloud: Known<CloudFacts> | undefined;
};

/** What every object has. Times are milliseconds since the epoch, 0 when not told. */
export type Identity = {
  /** `name` or `namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly createdMs: number;
  /** Since when it waits for its finalizers; undefined when nobody deletes it. */
  readonly leavingSinceMs: number | undefined;
  readonly finalizers: readonly string[];
};

/** A NodeENIConfig as far as it can be read. */
export type ClusterNec = Identity & {
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /** What is malformed, as 'path: expected …'. */
  readonly faults: readonly string[];
  /** What people set on it by annotations, as 'name=value' without the product's prefix. */
  readonly settings: readonly string[];
};

/** A Node. */
export type ClusterNode = Identity & {
  readonly isReady: boolean;
  /** True while our taint keeps Pods away. */
  readonly isTainted: boolean;
  readonly podCidrs: readonly string[];
  /** As ClusterNec.settings. */
  readonly settings: readonly string[];
};

/** A Pod. */
export type ClusterPod = Identity & {
  readonly nodeName: string;
  /** In their shortest spelling. */
  readonly ips: readonly string[];
};

/** A VpcIP. */
export type ClusterVip = Identity & {
  /** True for an ENI's own address: no Pod has it. */
  readonly isEnis: boolean;
  readonly ip: string;
  /** `namespace/name`, '' when it names none. */
  readonly podKey: string;
  /** '' while it is kept for a Pod that is not there. */
  readonly podUid: string;
  /** As ClusterClaim.isRecord. */
  readonly isRecord: boolean;
  readonly subnetId: string;
  readonly nodeName: string;
  readonly eniId: string;
  readonly intents: readonly WorkIntent[];
};

/** A VpcIPClaim; its key is the Pod's. */
export type ClusterClaim = Identity & {
  readonly podUid: string;
  /** True when it outlives its Pod on purpose. */
  readonly isKept: boolean;
  /** True for what ipamd writes of a Pod whose address is not kept. */
  readonly isRecord: boolean;
  readonly ips: readonly string[];
  readonly nodeName: string;
} & Standing;

/** Where a claim stands. */
export type Standing = {
  readonly phase: string;
  /** What it waits for, or what is wrong; '' for nothing. */
  readonly message: string;
  /** Since when its condition Ready is as it is; 0 when not told. */
  readonly sinceMs: number;
  /** Since when it waits for a Pod of its name; undefined while it has one. */
  readonly retainedMs: number | undefined;
};

/** A VpcENI. */
export type ClusterVeni = Identity & {
  readonly nodeName: string;
  readonly eniId: string;
  /** `namespace/name`, '' when it is for no Pod. */
  readonly podKey: string;
  readonly isKept: boolean;
  readonly isExclusive: boolean;
  readonly phase: string;
  readonly intents: readonly WorkIntent[];
};

/** An EIPClaim; its key is the Pod's. */
export type ClusterEip = Identity & {
  readonly isKept: boolean;
  readonly publicIp: string;
  readonly nodeName: string;
  readonly intents: readonly WorkIntent[];
} & Standing;

/** A cloud call under way. */
export type WorkIntent = {
  readonly id: string;
  readonly action: string;
  readonly phase: string;
  readonly recordedMs: number;
  readonly resourceName: string;
  readonly eniId: string;
  readonly tries: number;
  /** 'Code: message', '' when no try failed. */
  readonly lastError: string;
};

/** What the cloud holds for this cluster. */
export type CloudFacts = {
  /** Of the tags; undefined when neither given nor learnt: then orphans cannot be told. */
  readonly clusterId: string | undefined;
  readonly enis: readonly Eni[];
  /** False when the cloud changed while it was read: what is missing may exist all the same. */
  readonly isConsistent: boolean;
  readonly subnets: readonly Subnet[];
};
