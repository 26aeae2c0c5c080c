import { NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEntry } from '../cache/node-entry.ts';

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
