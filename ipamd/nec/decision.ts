import type { CallPriority } from '../../cloud/cloud.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** An intent as the object has it. */
export type Intent = NonNullable<NodeEniConfigStatus['intents']>[number];

/** What one look at a node leads to. The first that applies wins, from top to bottom. */
export type Decision =
  /** The object cannot be trusted (an older state was restored, or a call of unknown outcome): describe, then rebuild. */
  | { readonly kind: 'describe'; readonly why: string }
  /** One guarded write puts this status in force; then the call of `intent` is made. */
  | {
      readonly kind: 'begin';
      readonly status: NodeEniConfigStatus;
      readonly intent: Intent;
      readonly priority: CallPriority;
    }
  /** One guarded write, and no call: a mark (draining), a condition, a count. */
  | { readonly kind: 'write'; readonly status: NodeEniConfigStatus }
  /** Everything is given back: the finalizer may go. */
  | { readonly kind: 'released' }
  /** More is wanted and cannot be had now; looked at again after `afterMs`, or when something changes. */
  | { readonly kind: 'hold'; readonly reason: HoldReason; readonly message: string; readonly afterMs: number }
  | { readonly kind: 'idle' };

/** Why a node has less than it wants; the reason of its condition and its event. */
export type HoldReason =
  | 'SubnetExhausted'
  | 'NoSubnetInZone'
  | 'ENILimit'
  | 'InstanceENILimit'
  | 'NodeIPLimit'
  | 'DirectENILimit'
  | 'DirectENIElsewhere'
  | 'InstanceUnknown'
  | 'InstanceNotRunning'
  | 'CallUnderWay'
  /** Of kept addresses: told of their claims. */
  | 'ClaimWaits'
  | 'CloudRefused';

/** How the call of an intent ended. */
export type IntentOutcome =
  | { readonly kind: 'done'; readonly result: IntentResult }
  /** The cloud said no, and nothing happened: the intent goes, and with it what it promised. */
  | { readonly kind: 'refused'; readonly error: IntentFailure }
  /** Accepted, and its task still runs: looked at again later. `eni` and `ips` are what the call is about to bring. */
  | {
      readonly kind: 'accepted';
      readonly taskId: string;
      readonly eni?: SeenEni;
      readonly ips?: readonly string[];
    }
  /** Nobody knows: it stays, marked Unclear, until the cloud was described. */
  | { readonly kind: 'unclear'; readonly error: IntentFailure };

/** What the cloud says of a refusal, in plain data. */
export type IntentFailure = {
  readonly code: string;
  readonly message: string;
  readonly requestId?: string;
};

/** What a call that succeeded brought. */
export type IntentResult =
  | { readonly action: 'CreateNetworkInterface'; readonly eni: SeenEni }
  | { readonly action: 'AttachNetworkInterface'; readonly eni: SeenEni }
  | { readonly action: 'DetachNetworkInterface' }
  | { readonly action: 'DeleteNetworkInterface' }
  | { readonly action: 'AssignPrivateIpAddresses'; readonly ips: readonly string[] }
  | { readonly action: 'UnassignPrivateIpAddresses'; readonly ips: readonly string[] }
  | { readonly action: 'MigratePrivateIpAddress'; readonly ips: readonly string[] }
  | { readonly action: 'ModifyNetworkInterfaceAttribute'; readonly securityGroups: readonly string[] };

/** An ENI as the cloud described it, in the words of the NodeENIConfig. */
export type SeenEni = {
  readonly eniID: string;
  readonly mac: string;
  readonly name: string;
  readonly primaryIP: string;
  readonly subnetID: string;
  readonly subnetCIDR: string;
  readonly gateway: string;
  readonly state: 'PENDING' | 'AVAILABLE' | 'ATTACHING' | 'DETACHING' | 'DELETING';
  /** The instance that it is on, or on its way to or from. */
  readonly instanceID?: string;
  readonly deviceIndex?: number;
  readonly securityGroups: readonly string[];
  /** Secondary addresses that are there (AVAILABLE). */
  readonly ips: readonly string[];
  /** Secondary addresses that come or go. */
  readonly pendingIps: readonly string[];
  /** By its tag: handed to one Pod. */
  readonly mode?: 'direct-eni';
  /** True for an ENI that somebody else put on the instance: takes a place there, and is never touched. */
  readonly isForeign?: boolean;
  /** True for one that another NodeENIConfig made and holds. */
  readonly isOthers?: boolean;
};

/** What the cloud holds for one node: described after the last call for it ended. */
export type CloudSight = {
  /** ENIs that carry the node's tags or its instance's id, the primary left out. By id. */
  readonly enis: ReadonlyMap<string, SeenEni>;
  /** False when the sweep saw ENIs come and go between its pages: what is absent may be there all the same. */
  readonly isComplete: boolean;
};

/** What makes a decision's ids; a port, so that decisions are the same each time they are tried. */
export type Ids = {
  /** Never used before, in this or any other life of the object: 64 random bits, as 16 hex digits. */
  next(): string;
  /** RFC 3339, for people. */
  now(): string;
};

/** Who decides. */
export type Leader = {
  readonly epoch: number;
  readonly clusterId: string;
  /** Seconds after which a call is given up. */
  readonly requestTimeoutSeconds: number;
};
