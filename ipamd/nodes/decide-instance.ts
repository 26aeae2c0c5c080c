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

/** A Node that names an instance, and since when its NodeENIConfig holds that instance; undefined when it does not. */
export type Claimant = { readonly node: NodeEntry; readonly ownsSince: string | undefined };

/**
 * Finds another Node that has a node's instance. An instance has one node: ENIs that two NodeENIConfigs create for it
 * would conflict. The Node whose NodeENIConfig holds the instance keeps it, of two the older one; if none does, the first by
 * name gets it. A Node that is to have no ENIs does not count.
 */
export function findRival(name: string, claimants: Iterable<Claimant>): string | undefined {
  const rankOf = ({ node, ownsSince }: Claimant): string => `${ownsSince ?? NEVER} ${node.name}`;
  const all = [...claimants].filter(({ node }) => node.name === name || takesEnis(node));
  const [first] = all.sort((one, other) => (rankOf(one) < rankOf(other) ? -1 : 1));
  return first?.node.name === name ? undefined : first?.node.name;
}

/** After every time in RFC 3339. */
const NEVER = '~';

function takesEnis({ isInstance, annotations }: NodeEntry): boolean {
  return isInstance && annotations[NODE_ANNOTATION.disableEni] !== 'true';
}
