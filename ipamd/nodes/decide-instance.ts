/** The sources for a node's instance. */
type InstanceFacts = {
  /** Instance in the NodeENIConfig: `status.instanceID`. */
  readonly ofConfig: string | undefined;
  /** Instance according to the Node, or to a Machine. */
  readonly ofNode: string | undefined;
  /** Creation times, RFC 3339; empty when there is no Node. */
  readonly nodeCreatedAt: string;
  readonly configCreatedAt: string;
};

/** The instance whose ENIs a NodeENIConfig holds, and whether another instance has the name of its node now. */
export type InstanceDecision = { readonly instanceId: string | undefined; readonly isReplaced: boolean };

/**
 * Decides which instance a NodeENIConfig belongs to. Names of nodes are used again: a Node that is newer than the
 * object and is another instance has replaced the former one. An older Node is more reliable than the object, which
 * people can edit.
 */
export function decideInstance({ ofConfig, ofNode, nodeCreatedAt, configCreatedAt }: InstanceFacts): InstanceDecision {
  if (ofConfig === undefined || ofNode === undefined || ofConfig === ofNode)
    return { instanceId: ofConfig ?? ofNode, isReplaced: false };
  const isReplaced = nodeCreatedAt > configCreatedAt;
  return { instanceId: isReplaced ? ofConfig : ofNode, isReplaced };
}
