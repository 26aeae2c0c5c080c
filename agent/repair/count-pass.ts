import type { ObservedHost } from '../../dataplane/observed.ts';
import type { Operation } from '../../dataplane/operation.ts';
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

/** Counts the links that have a program of the fast path after a pass, by what it found and what it did. */
export function countFastLinks({ filters }: Pick<ObservedHost, 'filters'>, done: readonly Operation[]): number {
  const places = new Map((filters?.ours ?? []).map((filter) => [placeOf(filter), filter.ifindex]));
  for (const operation of done) {
    if (operation.kind === 'attach-filter') places.set(placeOf(operation.filter), operation.filter.ifindex);
    if (operation.kind === 'detach-filter') places.delete(placeOf(operation.filter));
  }
  return new Set(places.values()).size;
}

function placeOf({ ifindex, direction }: { readonly ifindex: number; readonly direction: string }): string {
  return `${ifindex} ${direction}`;
}
