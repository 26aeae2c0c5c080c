/** Who says what of a node's instance. */
export type InstanceFacts = {
  /** What the NodeENIConfig says: `status.instanceID`. */
  readonly held: string | undefined;
  /** What the Node, or a Machine, says. */
  readonly own: string | undefined;
  /** Creation times, RFC 3339; empty when there is no Node. */
  readonly nodeCreatedAt: string;
  readonly configCreatedAt: string;
};

/** Whose ENIs a NodeENIConfig holds, and whether another instance has the name of its node now. */
export type InstanceJudgement = { readonly instanceId: string | undefined; readonly isReplaced: boolean };

/**
 * Decides which instance a NodeENIConfig is about. Names of nodes are used again: a Node that came after the object and
 * is another instance has replaced it. A Node that was there before knows better than the object, which people can edit.
 * Pure.
 */
export function decideInstance({ held, own, nodeCreatedAt, configCreatedAt }: InstanceFacts): InstanceJudgement {
  if (held === undefined || own === undefined || held === own) return { instanceId: held ?? own, isReplaced: false };
  const isReplaced = nodeCreatedAt > configCreatedAt;
  return { instanceId: isReplaced ? held : own, isReplaced };
}
