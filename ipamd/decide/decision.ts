import type { CallPriority } from '../../cloud/cloud.ts';
import type { Mutation } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** An intent as the object contains it. */
export type Intent = NonNullable<NodeEniConfigStatus['intents']>[number];

/** What one pass over a node leads to. The kinds are checked from top to bottom; the first that applies is returned. */
export type Decision =
  /** The object cannot be trusted: an older state was restored. Describe the cloud, then rebuild the status. */
  | { readonly kind: 'describe'; readonly why: string }
  | Begin
  /** One guarded write without a call: draining, a condition, a count. */
  | { readonly kind: 'write'; readonly status: NodeEniConfigStatus }
  /** Nothing is left in the cloud: the finalizer may be removed. */
  | ({ readonly kind: 'released' } & Rest)
  | (Blocked & Rest)
  | ({ readonly kind: 'idle' } & Rest);

/** With a decision that begins nothing: why claims whose Pods are on the node wait, by key; absent when unknown. */
type Rest = { readonly waits?: ReadonlyMap<string, ClaimWait> };

/** A call that is to be made: one guarded write stores the status, then the call of `intent` is made. */
export type Begin = {
  readonly kind: 'begin';
  readonly status: NodeEniConfigStatus;
  readonly intent: Intent;
  readonly priority: CallPriority;
};

/** A call that is planned: it has no id yet, and nothing is on record. */
export type PlannedCall = {
  readonly kind: 'call';
  readonly action: Mutation;
  readonly fields: Partial<Intent>;
  readonly priority: CallPriority;
  /** What changes in the write that records the intent; absent: nothing. */
  readonly change?: (status: NodeEniConfigStatus) => NodeEniConfigStatus;
};

/**
 * The answer to something that is wanted, or to be given back: the call that does it, or why there is none yet. `claim` is the key of
 * the claim whose Pod waits; absent: it is for the pool, or no Pod waits.
 */
export type Answer = (PlannedCall | Blocked) & { readonly claim?: string };

/** More is requested than can be had now. Checked again after `afterMs`, or when something changes. */
export type Blocked = {
  readonly kind: 'blocked';
  readonly reason: BlockedReason;
  readonly message: string;
  /** Of the call that the cloud refused, if it refused one. */
  readonly requestId?: string;
  readonly afterMs: number;
};

/** Why a node has less than its demand; the reason of its condition and of its event. */
export type BlockedReason =
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
  /** For static addresses; the reason is reported on their claims. */
  | 'ClaimWaits'
  /** Likewise; no place becomes free unless Pods or claims of the node are deleted. */
  | 'NodeFull'
  | 'CloudRefused';

/** Why a claim waits on a node. */
export type ClaimWait = {
  readonly message: string;
  /** True when no place for it becomes free unless Pods or claims of the node are deleted. */
  readonly isNodeFull: boolean;
};

/** How the call of an intent ended. */
export type IntentOutcome =
  | { readonly kind: 'done'; readonly result: IntentResult }
  /**
   * The cloud refused the call, and nothing happened. The intent is removed, with everything that was expected from it.
   */
  | { readonly kind: 'refused'; readonly error: IntentFailure }
  /**
   * The cloud accepted the call, and its task still runs; checked again later. `eni` and `ips` are what the call will
   * bring.
   */
  | {
      readonly kind: 'accepted';
      readonly taskId: string;
      readonly eni?: ObservedEni;
      readonly ips?: readonly string[];
    }
  /** The outcome is unknown: the intent stays, marked Unclear, until the cloud was described. */
  | { readonly kind: 'unclear'; readonly error: IntentFailure };

/** A refusal of the cloud, as plain data. */
export type IntentFailure = {
  readonly code: string;
  readonly message: string;
  readonly requestId?: string;
};

/** What a successful call brought. */
export type IntentResult =
  | { readonly action: 'CreateNetworkInterface'; readonly eni: ObservedEni }
  | { readonly action: 'AttachNetworkInterface'; readonly eni: ObservedEni }
  | { readonly action: 'DetachNetworkInterface' }
  | { readonly action: 'DeleteNetworkInterface' }
  | { readonly action: 'AssignPrivateIpAddresses'; readonly ips: readonly string[] }
  | { readonly action: 'UnassignPrivateIpAddresses'; readonly ips: readonly string[] }
  | { readonly action: 'MigratePrivateIpAddress'; readonly ips: readonly string[] }
  | { readonly action: 'ModifyNetworkInterfaceAttribute'; readonly securityGroups: readonly string[] };

/** An ENI as the cloud described it, in the terms of the NodeENIConfig. */
export type ObservedEni = {
  readonly eniID: string;
  readonly mac: string;
  readonly name: string;
  readonly primaryIP: string;
  readonly subnetID: string;
  readonly subnetCIDR: string;
  readonly gateway: string;
  readonly state: 'PENDING' | 'AVAILABLE' | 'ATTACHING' | 'DETACHING' | 'DELETING';
  /** The instance that the ENI is attached to, or is being attached to or detached from. */
  readonly instanceID?: string;
  readonly deviceIndex?: number;
  /** Whether it is on a place of the extension type; absent when the cloud does not report it. */
  readonly isExtension?: boolean;
  readonly securityGroups: readonly string[];
  /** Secondary addresses that are usable (AVAILABLE). */
  readonly ips: readonly string[];
  /** Secondary addresses that are being assigned or unassigned. */
  readonly pendingIps: readonly string[];
  /** From the ENI's tag: an exclusive ENI, for one Pod. */
  readonly mode?: 'direct-eni';
  /**
   * True for an ENI that ipamd did not put on the instance. It uses one ENI slot of the instance and is never changed.
   */
  readonly isForeign?: boolean;
  /** True for an ENI that another NodeENIConfig created and has. */
  readonly isOthers?: boolean;
};

/** What the cloud holds for one node, described after the last call for the node ended. */
export type CloudSnapshot = {
  /** By id: ENIs with the node's tags or on its instance, without the primary ENI. */
  readonly enis: ReadonlyMap<string, ObservedEni>;
  /**
   * False when ENIs changed while the pages of the sweep were read: an ENI that is missing here may exist all the same.
   */
  readonly isComplete: boolean;
};

/** Source of ids and times for a decision. It is a port, so that a decision is the same each time it is repeated. */
export type Ids = {
  /**
   * Returns an id that was never used before, in this or any other life of the object: 64 random bits as 16 hex digits.
   */
  next(): string;
  /** Returns the time as RFC 3339, for people. */
  now(): string;
};

/** The leader that decides. */
export type Leader = {
  readonly epoch: number;
  readonly clusterId: string;
  /** Seconds after which a call is given up. */
  readonly requestTimeoutSeconds: number;
};
