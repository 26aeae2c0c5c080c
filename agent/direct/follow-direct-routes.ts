import type { NodeNetwork } from '../../dataplane/network.ts';
import { type Lease, leaseKey } from '../journal/lease.ts';
import type { NodeState } from '../node-state.ts';
import type { PodWiring, UseCaseDeps } from '../ports.ts';

/** Dependencies of following the routes of Pods with exclusive ENIs. */
type DirectRoutesDeps = Pick<UseCaseDeps, 'mutex' | 'clock' | 'log'> & {
  readonly state: Pick<NodeState, 'leases' | 'changed' | 'podNetwork'>;
  readonly wiring: Pick<PodWiring, 'updateRoutes'>;
  /** The node as planned now; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
};

/** Interval of trying again Pods whose routes were refused. */
const RETRY_MS = 10_000;

/**
 * Lets Pods with exclusive ENIs follow the node until aborted: when the node's addresses or the ranges of Services and
 * of bridge Pods change, the routes inside each such Pod are made equal to its plan. At the start all of them are
 * compared: the agent may have ended in the middle. Never rejects.
 */
export async function followDirectRoutes(deps: DirectRoutesDeps, signal: AbortSignal): Promise<void> {
  const { state, nodeNetwork, clock } = deps;
  let applied: string | undefined;
  let nextMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const changed = state.changed.wait(RETRY_MS, signal);
    const node = nodeNetwork();
    const wanted = node === undefined ? undefined : keyOf(node);
    if (wanted !== undefined && wanted !== applied && clock.monotonicMs() >= nextMs) {
      applied = (await updateAll(deps)) ? wanted : undefined;
      if (applied === undefined) nextMs = clock.monotonicMs() + RETRY_MS;
    }
    await changed;
  }
}

/** What the routes inside such a Pod depend on, of the node. */
function keyOf({ primary, podCidrs, serviceCidrs = [] }: NodeNetwork): string {
  return JSON.stringify([primary.addresses, podCidrs, serviceCidrs]);
}

/** Returns whether every Pod is up to date. */
async function updateAll(deps: DirectRoutesDeps): Promise<boolean> {
  const { state, log } = deps;
  let isComplete = true;
  for (const lease of [...state.leases.values()].filter(({ plugin }) => plugin === 'direct-eni')) {
    try {
      await update(deps, lease);
    } catch (error) {
      isComplete = false;
      const { podNamespace, podName, containerId } = lease;
      log.warn('the routes of a Pod do not follow the node yet', { podNamespace, podName, containerId, error });
    }
  }
  return isComplete;
}

async function update({ state, mutex, wiring }: DirectRoutesDeps, { containerId, ifName }: Lease): Promise<void> {
  const key = leaseKey(containerId, ifName);
  await mutex.run(key, async () => {
    // It may have ended while an ADD or DEL of it ran.
    const lease = state.leases.get(key);
    if (lease?.state !== 'active') return;
    const pod = state.podNetwork(lease);
    if (pod !== undefined) await wiring.updateRoutes(pod, lease.netns);
  });
}
