import { eniCapacitiesOf } from '../index/node-capacity.ts';
import type { PodRequest } from '../index/pod-request.ts';
import type { NodeEntry } from '../index/scheduler-index.ts';
import { decideFit } from './decide-fit.ts';
import type { FitContext } from './fit-context.ts';

/** The Pods that would be evicted from a node, by uid. */
export type Victims = { readonly uids: readonly string[]; readonly pdbViolations: number };

/** Look-ups in the index. */
type Lookups = {
  readonly pod: (uid: string) => PodRequest | undefined;
  /** The Pods on a node that request something of this system. */
  readonly podsOn: (nodeName: string) => readonly PodRequest[];
  readonly node: (name: string) => NodeEntry | undefined;
};

/**
 * Selects the nodes on which a Pod fits after the victims are evicted.
 *
 * A victim frees what it used. A victim with a static address is an exception: the address stays on the node, so its
 * capacity stays used. Where the proposed victims free too little, Pods of lower priority than the preemptor are added
 * that free what it needs, those of the lowest priority first. The proposed ones stay, as the scheduler may need their
 * processor time or memory. Disruption budgets are not known here: each added victim counts as a violation, so that the
 * scheduler prefers nodes without. A reason that evictions cannot change, such as the zone, drops the node.
 */
export function decidePreemption(
  context: FitContext,
  victims: ReadonlyMap<string, Victims>,
  lookups: Lookups,
): ReadonlyMap<string, Victims> {
  const fitting = [...victims].flatMap(([name, proposed]) => {
    const decided = decideVictims(context, name, proposed, lookups);
    return decided === undefined ? [] : [[name, decided] as const];
  });
  return new Map(fitting);
}

function decideVictims(context: FitContext, name: string, proposed: Victims, lookups: Lookups): Victims | undefined {
  const view = lookups.node(name);
  const there = lookups.podsOn(name);
  const evicted = proposed.uids.flatMap((uid) => lookups.pod(uid) ?? []).filter(({ nodeName }) => nodeName === name);
  const refusalWith = (more: readonly PodRequest[]) =>
    decideFit(context, view === undefined ? undefined : withoutPods(view, [...evicted, ...more], there));
  const refusal = refusalWith([]);
  if (refusal === undefined) return proposed;
  if (refusal.isUnresolvable) return undefined;
  const isProposed = new Set(proposed.uids);
  const candidates = there
    .filter((pod) => !isProposed.has(pod.uid) && pod.priority < context.demand.priority && frees(pod, context.demand))
    .sort((one, other) => one.priority - other.priority || (one.uid < other.uid ? -1 : 1));
  const count = candidates.findIndex((_, index) => refusalWith(candidates.slice(0, index + 1)) === undefined) + 1;
  if (count === 0) return undefined;
  let added = candidates.slice(0, count);
  // One of another kind may have been added in vain.
  for (const pod of added.toReversed()) {
    const others = added.filter((one) => one !== pod);
    if (refusalWith(others) === undefined) added = others;
  }
  const uids = merged(proposed.uids, added, lookups.pod);
  return { uids, pdbViolations: proposed.pdbViolations + added.length };
}

/** Reports whether the eviction of a Pod frees something that another one needs. */
function frees(pod: PodRequest, demand: PodRequest): boolean {
  if (demand.eips > 0 && pod.eips > 0) return true;
  if (pod.isStatic) return false;
  return (demand.routeIps > 0 && pod.routeIps > 0) || (demand.exclusiveEnis > 0 && pod.exclusiveEnis > 0);
}

/** Returns all uids, those of higher priority first: the scheduler compares nodes by the first. */
function merged(proposed: readonly string[], added: readonly PodRequest[], podOf: Lookups['pod']): readonly string[] {
  const uids = [...proposed];
  for (const { uid, priority } of added) {
    const before = uids.findIndex((one) => (podOf(one)?.priority ?? Number.POSITIVE_INFINITY) < priority);
    uids.splice(before < 0 ? uids.length : before, 0, uid);
  }
  return uids;
}

function withoutPods(view: NodeEntry, evicted: readonly PodRequest[], there: readonly PodRequest[]): NodeEntry {
  const { capacity } = view;
  if (capacity === undefined) return view;
  const freed = { route: 0, exclusive: 0, eip: 0 };
  for (const pod of evicted) {
    freed.eip += pod.eips;
    if (pod.isStatic) continue;
    freed.route += pod.routeIps;
    freed.exclusive += pod.exclusiveEnis;
  }
  const after = {
    ...capacity,
    route: { ...capacity.route, used: capacity.route.used - freed.route },
    exclusive: { ...capacity.exclusive, used: capacity.exclusive.used - freed.exclusive },
    eip: { ...capacity.eip, used: capacity.eip.used - freed.eip },
  };
  const { name, node, nec } = view;
  const left = there.filter((pod) => !evicted.includes(pod));
  const eniCapacities = nec === undefined ? [] : eniCapacitiesOf(nec, left);
  const supply = view.supply && { ...view.supply, spare: view.supply.spare + freed.route };
  const routeFree = (after.route.limit ?? 0) - after.route.used;
  const spare = view.spare + freed.route;
  const { sourcesNumber, hasPendingCalls, staticZone } = view;
  const own = { name, node, nec, sourcesNumber, hasPendingCalls, staticZone, staticCapacity: undefined };
  return { ...own, eniCapacities, capacity: after, routeFree, spare, supply };
}
