import type { Presence } from './decide-presence.ts';

/** What exists under one node name. */
export type ConfigFacts = {
  /** Undefined: there is no Node of this name. */
  readonly node: KnownNode | undefined;
  /** Of the Node; undefined when unknown. */
  readonly instanceId: string | undefined;
  readonly presence: Presence;
  /** The limits of the instance are known. */
  readonly hasLimits: boolean;
  /** Another Node that names the same instance and has it; see `findRival`. */
  readonly rival?: string | undefined;
  /** Undefined: there is no NodeENIConfig of this name. */
  readonly config: KnownConfig | undefined;
};

/** What is known of a Node. */
type KnownNode = {
  readonly isInstance: boolean;
  readonly isDisabled: boolean;
  /** False: its Pods have a podCIDR, and no subnet is configured from which it could have ENIs. Default: true. */
  readonly hasSubnets?: boolean;
};

/** What is known of a NodeENIConfig. */
type KnownConfig = {
  readonly instanceId: string | undefined;
  readonly isLeaving: boolean;
  /** The object contains ENIs or calls in flight, or is unreadable. */
  readonly isInUse: boolean;
};

/** What to do about the NodeENIConfig of a node. */
export type ConfigStep =
  | { readonly kind: 'create' }
  /** Request its deletion: its finalizer keeps it until nothing is left in the cloud. */
  | { readonly kind: 'remove'; readonly why: 'NodeGone' | 'InstanceReplaced' | 'InstanceTaken' }
  /** It exists and stays; its policy fields are updated. */
  | { readonly kind: 'keep' }
  /** Nothing can be decided yet. */
  | { readonly kind: 'wait'; readonly why: 'InstanceUnknown' | 'InstanceTaken' | 'NotDescribed' }
  | { readonly kind: 'none' };

/** Decides whether the NodeENIConfig of a node is created, kept or deleted. */
export function decideConfig(facts: ConfigFacts): ConfigStep {
  return facts.config === undefined ? decideNew(facts) : decideOld(facts, facts.config);
}

function decideNew({ node, instanceId, presence, hasLimits, rival }: ConfigFacts): ConfigStep {
  if (node === undefined || !node.isInstance || node.isDisabled || node.hasSubnets === false) return { kind: 'none' };
  if (instanceId === undefined) return { kind: 'wait', why: 'InstanceUnknown' };
  if (rival !== undefined) return { kind: 'wait', why: 'InstanceTaken' };
  if (presence === 'gone') return { kind: 'wait', why: 'InstanceUnknown' };
  if (presence === 'unknown' || !hasLimits) return { kind: 'wait', why: 'NotDescribed' };
  return presence === 'running' ? { kind: 'create' } : { kind: 'none' };
}

function decideOld({ node, instanceId, rival }: ConfigFacts, config: KnownConfig): ConfigStep {
  if (config.isLeaving) return { kind: 'none' };
  // ENIs are drained first: a deletion cannot be undone, and a node that registers again needs its ENIs while its Pods
  // run on.
  if (node === undefined) return config.isInUse ? { kind: 'none' } : { kind: 'remove', why: 'NodeGone' };
  // The name is often the node's address, and addresses are used again: the ENIs are still those of the former
  // instance.
  const isReplaced = config.instanceId !== undefined && instanceId !== undefined && config.instanceId !== instanceId;
  if (isReplaced) return { kind: 'remove', why: 'InstanceReplaced' };
  // Somebody made it beside that of another Node of the instance. One that has ENIs is held: it is not sure whose they are.
  return rival !== undefined && !config.isInUse ? { kind: 'remove', why: 'InstanceTaken' } : { kind: 'keep' };
}
