import type { NodeState } from '../state/node-state.ts';

/**
 * Counts the ENIs of the node for the metrics; undefined where none is expected: in a GlobalRoute cluster no node has a supply, and
 * that no ENI is ready is no problem there.
 */
export function countEnis({
  supply,
  isBridgeDefault,
  readyEnis,
  eniProblems,
}: Pick<NodeState, 'supply' | 'isBridgeDefault' | 'readyEnis' | 'eniProblems'>):
  | { readonly ready: number; readonly missing: number }
  | undefined {
  if (supply === undefined && isBridgeDefault) return undefined;
  return { ready: readyEnis.size, missing: eniProblems.size };
}
