import type { NodeNetwork } from '../../dataplane/network.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { NodeState } from '../state/node-state.ts';
import type { PodWiring, UseCaseDeps } from '../state/ports.ts';

/** Dependencies of following the routes of Pods with exclusive ENIs. */
type ExclusiveRoutesDeps = Pick<UseCaseDeps, 'mutex' | 'clock' | 'log'> & {
  readonly state: Pick<NodeState, 'leases' | 'changed' | 'podNetwork'>;
  readonly wiring: Pick<PodWiring, 'updateRoutes'>;
  /** The node as planned now; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
};

/** Waits before Pods whose routes were refused are tried again. */
const RETRY: BackoffSettings = { firstMs: 10_000, maxMs: 300_000, factor: 2, jitter: 0 };
/** Interval of looking at the node, for changes that were not notified. */
const LOOK_MS = 10_000;

/**
 * Lets Pods with exclusive ENIs follow the node until aborted: when the node's addresses or the ranges of Services and
 * of bridge Pods change, the routes inside each such Pod are made equal to its plan. At the start all of them are
 * compared: the agent may have ended in the middle. A Pod that refuses is tried again alone. Never rejects.
 */
export async function followExclusiveRoutes(deps: ExclusiveRoutesDeps, signal: AbortSignal): Promise<void> {
  const { state, nodeNetwork, clock } = deps;
  let applied: string | undefined;
  /** Why each Pod that is not up to date refused, by lease. */
  let failed: ReadonlyMap<string, string> = new Map();
  let attempts = 0;
  let nextMs = Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    const changed = state.changed.wait(LOOK_MS, signal);
    const node = nodeNetwork();
    const wanted = node === undefined ? undefined : keyOf(node);
    const isNew = wanted !== undefined && wanted !== applied;
    if (isNew || clock.monotonicMs() >= nextMs) {
      const keys = isNew ? exclusiveKeys(state) : [...failed.keys()];
      failed = await updateAll(deps, keys, failed);
      attempts = isNew ? 1 : attempts + 1;
      applied = wanted ?? applied;
      nextMs = failed.size === 0 ? Number.POSITIVE_INFINITY : clock.monotonicMs() + backoffMs(RETRY, attempts, 0);
    }
    await changed;
  }
}

function exclusiveKeys({ leases }: ExclusiveRoutesDeps['state']): readonly string[] {
  return [...leases].filter(([, { plugin }]) => plugin === 'direct-eni').map(([key]) => key);
}

/** What the routes inside such a Pod depend on, of the node. */
function keyOf({ primary, podCidrs, serviceCidrs = [] }: NodeNetwork): string {
  return JSON.stringify([primary.addresses, podCidrs, serviceCidrs]);
}

/**
 * Updates these Pods; returns why some refused. A reason is logged once.
 * @param before Reasons of the attempt before
 */
async function updateAll(
  deps: ExclusiveRoutesDeps,
  keys: readonly string[],
  before: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const failed = new Map<string, string>();
  for (const key of keys) {
    try {
      await update(deps, key);
    } catch (error) {
      const reason = String(error);
      failed.set(key, reason);
      const { podNamespace, podName } = deps.state.leases.get(key) ?? {};
      if (before.get(key) !== reason)
        deps.log.warn('the routes of a Pod do not follow the node yet', { podNamespace, podName, lease: key, error });
    }
  }
  return failed;
}

async function update({ state, mutex, wiring }: ExclusiveRoutesDeps, key: string): Promise<void> {
  await mutex.run(key, async () => {
    // It may have ended while an ADD or DEL of it ran.
    const lease = state.leases.get(key);
    if (lease?.state !== 'active') return;
    const pod = state.podNetwork(lease);
    if (pod !== undefined) await wiring.updateRoutes(pod, lease.netns);
  });
}
