import type { Lease } from '../journal/lease.ts';
import type { ExclusiveWarmTargets } from '../journal/supply.ts';
import type { WaitingAdd } from '../pods/count-waiting.ts';
import type { KubePod } from '../pods/pod-record.ts';
import { coolingDemand } from '../pool/brief.ts';
import { type ExclusiveEni, type ExclusivePoolState, isBriefSpare, isUsable } from './exclusive-pool.ts';

/** How many whole ENIs the pool of the node should have, and which it could release. */
type ExclusiveDemand = {
  /** In use + cooling + still registered with load balancers + waiting + warm, within the limit. ENIs with a claim, and who waits for one, do not count. */
  readonly desired: number;
  /** Number that is here now, without those offered. */
  readonly bound: number;
  /** Free ENIs beyond the warm maximum or the limit; those freed longest ago first. */
  readonly surplus: readonly ExclusiveEni[];
  /** Number of the surplus that exceeds the limit. */
  readonly excess: number;
};

/** Demand that the pool does not contain. */
type ExclusiveOutsideDemand = {
  /** Pods and ADDs that need an ENI of the pool and have none. */
  readonly waiting: number;
  /** Allocatable Pods of the Node; absent while it was not read. */
  readonly maxPods?: number | undefined;
  /** Milliseconds since boot. */
  readonly nowMs: number;
  /** Addresses that load balancers may still have as targets; absent: no controller publishes for this node. */
  readonly registered?: ReadonlySet<string> | undefined;
};

/** Computes the demand for whole ENIs from the pool. */
export function exclusiveDemand(
  state: ExclusivePoolState,
  warm: ExclusiveWarmTargets,
  outside: ExclusiveOutsideDemand,
): ExclusiveDemand {
  const { waiting, maxPods } = outside;
  const all = [...state.values()];
  const pool = all.filter(({ claim }) => claim === undefined);
  const isWaiting = ({ use, registered }: ExclusiveEni) => use === 'free' && registered === true;
  const spare = pool.filter((eni) => isBriefSpare(eni, outside)).length;
  const used = pool.filter((eni) => eni.use !== 'free' || isWaiting(eni)).length - spare;
  const cooling = pool.filter(({ use }) => use === 'cooling').length - spare;
  const free = pool.filter((eni) => eni.use === 'free' && isUsable(eni) && !isWaiting(eni));
  const bound = used + free.length + spare;
  const needed = used - cooling + coolingDemand(cooling, maxPods) + waiting;
  const limit = Math.max(
    0,
    (warm.limit ?? Number.POSITIVE_INFINITY) - (warm.awaited ?? 0) - (all.length - pool.length),
  );
  const ready = Math.min(Math.max(bound - needed, warm.min), warm.max);
  const excess = Math.min(free.length, Math.max(0, bound - limit));
  // What cools beyond the demand is no reason to give a free one back.
  const beyondWarm = Math.min(free.length, Math.max(0, bound - used - waiting - warm.max));
  const byAge = free.toSorted((a, b) => (a.freedAtMs ?? 0) - (b.freedAtMs ?? 0) || (a.eniId < b.eniId ? -1 : 1));
  return {
    desired: Math.min(needed + ready, limit),
    bound,
    surplus: byAge.slice(0, Math.max(excess, beyondWarm)),
    excess,
  };
}

/**
 * Counts who needs a whole ENI of the pool and has none: live Pods of the node, and waiting ADDs; a Pod whose ADD waits
 * counts once. Pods that require an ENI with a claim do not count: ipamd finds them by itself.
 */
export function countExclusiveWaiting(
  pods: Iterable<KubePod>,
  leases: Iterable<Lease>,
  adds: Iterable<WaitingAdd>,
): number {
  const directLeases = [...leases].filter(({ plugin }) => plugin === 'direct-eni');
  const uids = new Set(directLeases.map(({ podUid }) => podUid));
  const names = new Set(
    directLeases.filter(({ podUid }) => podUid === '').map(({ podNamespace, podName }) => `${podNamespace}/${podName}`),
  );
  const waiting = new Set<string>();
  for (const { namespace, name, uid, isAlive, direct } of pods) {
    const key = `${namespace}/${name}`;
    if (isAlive && direct === 'pool' && !uids.has(uid) && !names.has(key)) waiting.add(key);
  }
  let nameless = 0;
  for (const { podNamespace, podName } of adds) {
    if (podName === '') nameless++;
    else waiting.add(`${podNamespace}/${podName}`);
  }
  return waiting.size + nameless;
}
