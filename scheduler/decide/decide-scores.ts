import type { NodeEntry } from '../index/scheduler-index.ts';
import { type FitContext, hasStaticAddress } from './fit-context.ts';

/** The highest score that an extender may give. @see extender/v1 MaxExtenderPriority */
const MAX_SCORE = 10;

/**
 * Score of a node that has an ENI in the subnet of the static address. Its free capacity adds up to SPREAD_IN_SUBNET
 * points.
 */
const IN_SUBNET = 7;
const SPREAD_IN_SUBNET = 2;
/** Most points for a node in the right zone that would need another ENI for the static address. */
const SPREAD_ELSEWHERE = 4;

/** A node and its score, 0 to 10. The property names are those of the extender API. */
export type Score = { readonly Host: string; readonly Score: number };

/**
 * Scores nodes. The node with the Pod's static address scores highest, then nodes with an ENI in the subnet of that
 * address. Among equal nodes the one with more free capacity scores higher, so that Pods spread. `views` are in the
 * order of `names`.
 */
export function decideScores(
  context: FitContext,
  names: readonly string[],
  views: readonly (NodeEntry | undefined)[],
): readonly Score[] {
  const frees = views.map((view) => freeCapacityOf(context, view));
  const maxFree = Math.max(1, ...frees);
  return names.map((name, index) => {
    const share = (frees[index] ?? 0) / maxFree;
    return { Host: name, Score: scoreOf(context, views[index], share) };
  });
}

function scoreOf(context: FitContext, view: NodeEntry | undefined, share: number): number {
  const { nodesInSubnets } = context;
  if (view === undefined) return 0;
  if (hasStaticAddress(context, view)) return MAX_SCORE;
  if (nodesInSubnets === undefined) return Math.round(MAX_SCORE * share);
  const isIn = nodesInSubnets.some((nodes) => nodes.has(view.name));
  return Math.round(isIn ? IN_SUBNET + SPREAD_IN_SUBNET * share : SPREAD_ELSEWHERE * share);
}

function freeCapacityOf({ demand, availability }: FitContext, view: NodeEntry | undefined): number {
  if (view === undefined) return 0;
  if (demand.exclusiveEnis === 0) return Math.max(0, Math.min(view.routeFree, availableAddresses(availability, view)));
  const { limit = 0, used = 0 } = view.capacity?.exclusive ?? {};
  return Math.max(0, limit - used);
}

/**
 * Counts the addresses that the node has free plus those that the fullest of its subnets could still give it. So nodes
 * whose subnets run out of addresses score lowest.
 */
function availableAddresses(availability: FitContext['availability'], view: NodeEntry): number {
  const { routeFree, spare } = view;
  if (availability === undefined || spare >= routeFree) return routeFree;
  return Math.max(0, spare) + availability.maxAvailableAt(view.sourcesNumber, view);
}
