import type { NodeEntry } from '../index/scheduler-index.ts';
import { decideFit, otherZoneReason } from './decide-fit.ts';
import type { FitContext } from './fit-context.ts';
import { splitByZone } from './zone-split.ts';

/** A node that cannot take a Pod, and the reason. */
export type RefusedNode = { readonly name: string; readonly reason: string };

/** Nodes that cannot take a Pod for the same reason. */
export type RefusedNodes = { readonly names: readonly string[]; readonly reason: string };

/** The nodes that can take a Pod, and the reasons of those that cannot. */
export type FilterOutcome = {
  readonly fitting: readonly string[];
  /** Nodes on which an eviction of Pods could help. */
  readonly failed: readonly RefusedNode[];
  /** Nodes on which no action of the scheduler can help. */
  readonly unresolvable: readonly RefusedNode[];
  /** Further nodes of that kind: those outside the zone of the static address. The same array for each Pod of the zone. */
  readonly otherZone?: RefusedNodes | undefined;
  /** True when no node fits and the reason of at least one node is transient. */
  readonly isWorthWaiting: boolean;
};

/** Evaluates all nodes for a Pod; `views` are the index entries of the nodes, in the order of `names`. */
export function decideFilter(
  context: FitContext,
  allNames: readonly string[],
  allViews: readonly (NodeEntry | undefined)[],
): FilterOutcome {
  const { onlyZone, staticAddress } = context;
  const split = onlyZone === undefined ? undefined : splitByZone(allNames, allViews, onlyZone);
  const { names, views } = split ?? { names: allNames, views: allViews };
  const fitting: string[] = [];
  const failed: RefusedNode[] = [];
  const unresolvable: RefusedNode[] = [];
  let isTransient = false;
  for (let index = 0; index < names.length; index++) {
    const name = names[index] ?? '';
    const refusal = decideFit(context, views[index]);
    if (refusal === undefined) fitting.push(name);
    else if (refusal.isUnresolvable) unresolvable.push({ name, reason: refusal.reason });
    else failed.push({ name, reason: refusal.reason });
    isTransient ||= refusal?.isTransient === true;
  }
  // The same array where all fit: what was made of it is used again.
  const all = fitting.length === names.length ? names : fitting;
  const isSplit = split !== undefined && split.otherZone.length > 0 && staticAddress !== undefined;
  const otherZone = isSplit ? { names: split.otherZone, reason: otherZoneReason(staticAddress) } : undefined;
  return { fitting: all, failed, unresolvable, otherZone, isWorthWaiting: fitting.length === 0 && isTransient };
}
