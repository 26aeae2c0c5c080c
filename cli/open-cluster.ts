import type { OpenKubeClient } from '../kube/open-client.ts';
import { silentLogger } from '../runtime/log.ts';
import { release } from '../runtime/release.ts';
import type { CommandContext } from './command.ts';

/** How long a call may take, milliseconds, and how many a second may be made. */
export type ClusterPace = { readonly callMs: number; readonly qps: number; readonly burst: number };

/**
 * Opens a client of the API server that the kubeconfig names, or the Pod's own environment where there is none, for the
 * caller to close. The library is loaded only now. Rejects with ConfigError when neither names one.
 */
export async function openCluster(
  { global, env, clock }: Pick<CommandContext, 'global' | 'env' | 'clock'>,
  { callMs, qps, burst }: ClusterPace,
): Promise<OpenKubeClient> {
  const { openKubeClient } = await import('../kube/open-client.ts');
  return openKubeClient({
    ...(global.kubeconfig === '' ? {} : { kubeconfig: global.kubeconfig }),
    env,
    clock,
    log: silentLogger,
    qps,
    burst,
    userAgent: `tke-eni/${release}`,
    requestTimeoutMs: callMs,
    loadKubeConfig: async () => (await import('../kube/whole-kube-config.ts')).loadWholeKubeConfig(),
  });
}
