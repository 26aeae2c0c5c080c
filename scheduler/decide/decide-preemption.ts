import type { PodRequest } from '../index/pod-request.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import { decideFit } from './decide-fit.ts';
import type { FitContext } from './fit-context.ts';

/** The Pods that would be evicted from a node, by uid. */
export type Victims = { readonly uids: readonly string[]; readonly pdbViolations: number };

/**
 * Selects the nodes on which a Pod fits after the victims are evicted.
 *
 * A victim frees what it used. A victim with a static address is an exception: the address stays on the node, so its
 * capacity stays used. A reason that evictions cannot change, such as the zone, drops the node for any set of victims.
 * No victims are added: the scheduler chooses them by priorities and disruption budgets, which are not known here.
 */
export function decidePreemption(
  context: FitContext,
  victims: ReadonlyMap<string, Victims>,
  podOf: (uid: string) => PodRequest | undefined,
  viewOf: (name: string) => NodeView | undefined,
): ReadonlyMap<string, Victims> {
  const fitting = [...victims].filter(([name, { uids }]) => {
    const view = viewOf(name);
    const evicted = uids.flatMap((uid) => podOf(uid) ?? []).filter(({ nodeName }) => nodeName === name);
    return decideFit(context, view === undefined ? undefined : withoutPods(view, evicted)) === undefined;
  });
  return new Map(fitting);
}

function withoutPods(view: NodeView, evicted: readonly PodRequest[]): NodeView {
  const { capacity } = view;
  if (capacity === undefined) return view;
  const freed = { route: 0, direct: 0, eip: 0 };
  for (const pod of evicted) {
    freed.eip += pod.eips;
    if (pod.isStatic) continue;
    freed.route += pod.routeIps;
    freed.direct += pod.directEnis;
  }
  const after = {
    ...capacity,
    route: { ...capacity.route, used: capacity.route.used - freed.route },
    direct: { ...capacity.direct, used: capacity.direct.used - freed.direct },
    eip: { ...capacity.eip, used: capacity.eip.used - freed.eip },
  };
  const { name, node, nec, eniCapacities } = view;
  const supply = view.supply && { ...view.supply, spare: view.supply.spare + freed.route };
  const routeFree = (after.route.limit ?? 0) - after.route.used;
  return { name, node, nec, eniCapacities, capacity: after, routeFree, supply };
}
