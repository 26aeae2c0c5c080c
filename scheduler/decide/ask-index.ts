import type { PodDemand } from '../index/pod-demand.ts';
import type { SchedulerIndex } from '../index/scheduler-index.ts';
import { type FitQuestion, subnetsOf } from './fit-question.ts';

/** Looks up, once for all nodes, what a Pod is judged by. */
export function questionOf(index: SchedulerIndex, demand: PodDemand): FitQuestion {
  const claim = demand.isStatic ? index.claim(demand.key) : undefined;
  const ids = demand.nominatedSubnetIds ?? claim?.nominatedSubnetIds;
  const isPlain = !demand.isStatic && ids === undefined && demand.directEnis === 0 && demand.eips === 0;
  const kept = demand.isStatic ? index.keptOf(demand) : undefined;
  const nominated = ids?.map((subnetId) => ({ subnetId, zone: index.zoneOf(subnetId) }));
  return {
    demand,
    kept,
    nominated,
    isPlain,
    inSubnet: subnetsOf(demand, kept, nominated)?.map((subnetId) => index.nodesIn(subnetId)),
    holders: index.holdersOf(demand.key),
    ofZones: new Map(),
    promise: index.reservationOf(demand.uid),
    ledger: index.ledger(),
    ofSubnets: new Map(),
  };
}
