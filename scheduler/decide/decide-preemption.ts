import type { PodDemand } from '../index/pod-demand.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import { decideFit } from './decide-fit.ts';
import type { FitQuestion } from './fit-question.ts';

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
  question: FitQuestion,
  victims: ReadonlyMap<string, Victims>,
  podOf: (uid: string) => PodDemand | undefined,
  viewOf: (name: string) => NodeView | undefined,
): ReadonlyMap<string, Victims> {
  const kept = [...victims].filter(([name, { uids }]) => {
    const view = viewOf(name);
    const gone = uids.flatMap((uid) => podOf(uid) ?? []).filter(({ nodeName }) => nodeName === name);
    return decideFit(question, view === undefined ? undefined : without(view, gone)) === undefined;
  });
  return new Map(kept);
}

function without(view: NodeView, gone: readonly PodDemand[]): NodeView {
  const { room } = view;
  if (room === undefined) return view;
  const freed = { route: 0, direct: 0, eip: 0 };
  for (const pod of gone) {
    freed.eip += pod.eips;
    if (pod.isStatic) continue;
    freed.route += pod.routeIps;
    freed.direct += pod.directEnis;
  }
  const after = {
    ...room,
    route: { ...room.route, taken: room.route.taken - freed.route },
    direct: { ...room.direct, taken: room.direct.taken - freed.direct },
    eip: { ...room.eip, taken: room.eip.taken - freed.eip },
  };
  const { name, node, nec, eniRooms } = view;
  const supply = view.supply && { ...view.supply, spare: view.supply.spare + freed.route };
  const routeFree = (after.route.most ?? 0) - after.route.taken;
  return { name, node, nec, eniRooms, room: after, routeFree, supply };
}
