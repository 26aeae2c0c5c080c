import type { CniFailure } from '../api/cni-failure.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import { failureOf } from './failure-of.ts';
import { teardown } from './teardown.ts';

/**
 * Ends an attachment, by its lease alone: neither names nor the netns are used, so a late DEL of a Pod's old sandbox
 * cannot touch its new one. Its ADDs in progress fail. An unknown attachment is success. Returns the failure, or
 * undefined.
 * @param sentMs When the DEL was sent, milliseconds since boot: an attachment made later is left alone. Absent: now.
 */
export async function detach(
  deps: UseCaseDeps,
  target: { readonly containerId: string; readonly ifName: string },
  sentMs = Number.POSITIVE_INFINITY,
): Promise<CniFailure | undefined> {
  const key = leaseKey(target);
  const startedMs = deps.clock.monotonicMs();
  deps.state.inflightAdds.cancel(key, sentMs, 'a DEL came for it');
  const failure = await detachKey(deps, key, ({ createdAtMs }) => createdAtMs <= sentMs);
  deps.metrics.requests.observeMs({ verb: 'del', code: failure?.code ?? 0 }, deps.clock.monotonicMs() - startedMs);
  return failure;
}

/** Ends the lease of `key` if there is one and `shouldDetach`, called under the key's lock, returns true. */
export async function detachKey(
  deps: UseCaseDeps,
  key: LeaseKey,
  shouldDetach: (lease: Lease) => boolean,
  kind: 'del' | 'gc' = 'del',
): Promise<CniFailure | undefined> {
  const startedMs = deps.clock.monotonicMs();
  try {
    await deps.mutex.run(key, async () => {
      const lease = deps.state.leases.get(key);
      if (lease !== undefined && !shouldDetach(lease)) return;
      deps.operationLog.begin(key, {
        kind,
        podNamespace: lease?.podNamespace ?? '',
        podName: lease?.podName ?? '',
        startedMs,
      });
      deps.operationLog.step(key, 'queue');
      if (lease === undefined) return deps.operationLog.end(key, {});
      await teardownAndLog(deps, lease);
      deps.log.info('pod detached', {
        pod: `${lease.podNamespace}/${lease.podName}`,
        containerId: lease.containerId,
        ifName: lease.ifName,
        ips: lease.addresses.map(({ ip }) => ip),
      });
    });
    return undefined;
  } catch (error) {
    deps.log.error('detach failed, will be tried again', { key, error });
    return failureOf(error);
  }
}

async function teardownAndLog(deps: UseCaseDeps, lease: Lease): Promise<void> {
  const key = leaseKey(lease);
  try {
    await teardown(deps, lease, deps.settings.ipCooldownMs);
    deps.operationLog.end(key, { lease });
  } catch (error) {
    deps.operationLog.end(key, { lease, failure: failureOf(error) });
    throw error;
  }
}

/** Finishes every lease whose end was begun. Called at start and by the timer. Returns how many are left. */
export async function finishReleasing(deps: UseCaseDeps): Promise<number> {
  const isReleasing = ({ state }: Lease): boolean => state === 'releasing';
  const waiting = [...deps.state.leases.values()].filter(isReleasing);
  await Promise.all(waiting.map((lease) => detachKey(deps, leaseKey(lease), isReleasing)));
  return [...deps.state.leases.values()].filter(isReleasing).length;
}

/**
 * Ends what an earlier run of the agent left half done. The ADD of a pending lease was never answered, so the runtime
 * asks again: the lease is undone. A releasing one is finished. Returns how many are left for the timer.
 */
export async function recover(deps: UseCaseDeps): Promise<number> {
  for (const lease of [...deps.state.leases.values()]) {
    if (lease.state !== 'pending') continue;
    try {
      await teardown(deps, lease, deps.settings.ipCooldownMs);
      deps.log.info('undid an attachment that was never finished', { containerId: lease.containerId });
    } catch (error) {
      deps.log.error('an unfinished attachment could not be undone yet', { containerId: lease.containerId, error });
    }
  }
  return await finishReleasing(deps);
}
