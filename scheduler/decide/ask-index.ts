import type { PodDemand } from '../index/pod-demand.ts';
import type { SchedulerIndex } from '../index/scheduler-index.ts';
import type { FitQuestion } from './decide-fit.ts';

/** Looks up, once for all nodes, what a Pod is judged by. */
export function questionOf(index: SchedulerIndex, demand: PodDemand): FitQuestion {
  const claim = demand.isStatic ? index.claim(demand.key) : undefined;
  const ids = demand.nominatedSubnetIds ?? claim?.nominatedSubnetIds;
  const isPlain = !demand.isStatic && ids === undefined && demand.directEnis === 0 && demand.eips === 0;
  return {
    demand,
    isPlain,
    ofZones: new Map(),
    holders: index.holdersOf(demand.key),
    kept: demand.isStatic ? index.keptOf(demand) : undefined,
    nominated: ids?.map((subnetId) => ({ subnetId, zone: index.zoneOf(subnetId) })),
    promise: index.reservationOf(demand.uid),
  };
}
