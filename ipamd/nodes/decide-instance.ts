import { NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEntry } from '../cache/node-entry.ts';

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

/** A Node that names an instance, and whether its NodeENIConfig holds that instance. */
export type Claimant = { readonly node: NodeEntry; readonly ownsInstance: boolean };

/**
 * Finds another Node that has a node's instance. An instance has one node: ENIs that two NodeENIConfigs create for it
 * would conflict. The Node whose NodeENIConfig holds the instance keeps it; if none does, the first by name gets it. A
 * Node that is to have no ENIs does not count.
 */
export function findRival(name: string, claimants: Iterable<Claimant>): string | undefined {
  const others = [...claimants].filter(({ node }) => node.name !== name && takesEnis(node));
  const holder = others.find(({ ownsInstance }) => ownsInstance);
  if (holder !== undefined) return holder.node.name;
  const [first] = others.map(({ node }) => node.name).sort();
  return first !== undefined && first < name ? first : undefined;
}

function takesEnis({ isInstance, annotations }: NodeEntry): boolean {
  return isInstance && annotations[NODE_ANNOTATION.disableEni] !== 'true';
}
