import { isKubeError } from '../../kube/kube-error.ts';
import { backoffMs } from '../../runtime/backoff.ts';
import { type InstallDeps, installDefinitions } from './install-definitions.ts';

const CURE = 'look at --kubeconfig or --master, and whether it runs';
const BACKOFF = { firstMs: 500, maxMs: 30_000, factor: 2, jitter: 0 };

/**
 * Installs the definitions, again and again until they are there or the signal aborts. Never rejects.
 * @param tell hears why they are not there yet, and `undefined` once they are.
 */
export async function keepDefinitions(
  deps: InstallDeps,
  signal: AbortSignal,
  tell: (problem: string | undefined) => void,
): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await installDefinitions(deps, signal);
      tell(undefined);
      return;
    } catch (error) {
      if (signal.aborted) return;
      const detail = error instanceof Error ? error.message : String(error);
      if (isKubeError(error, 'UNAVAILABLE', 'TIMEOUT')) {
        deps.log.error(`the API server does not answer, ${CURE}; will try again`, { error });
        tell(`the API server does not answer: ${detail}`);
      } else {
        deps.log.error('definitions of resources are not in place, will try again', { error });
        tell(`definitions of resources: ${detail}`);
      }
      await deps.clock.sleep(backoffMs(BACKOFF, attempt, 0), signal).catch(() => {});
    }
  }
}
