import type { UseCaseDeps } from '../state/ports.ts';
import { finishReleasing } from './detach.ts';
import { teardown } from './teardown.ts';

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
