import type { OpenKubeClient } from '../../kube/open-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { release } from '../../runtime/release.ts';
import { UserError } from '../../runtime/user-error.ts';
import type { CommandContext } from './command.ts';

/** Timeout of a call in milliseconds, and the rate limit in calls per second with its burst. */
type ClusterPace = { readonly callMs: number; readonly qps: number; readonly burst: number };

/**
 * Opens a client of the API server from the kubeconfig, or from the Pod's own environment where there is no kubeconfig.
 * The caller must close it. The client library is loaded by this call. Rejects with ConfigError when neither names a
 * server.
 */
export async function openCluster(
  { global, env, clock }: Pick<CommandContext, 'global' | 'env' | 'clock'>,
  { callMs, qps, burst }: ClusterPace,
): Promise<OpenKubeClient> {
  const { openKubeClient } = await import('../../kube/open-client.ts');
  return openKubeClient({
    ...(global.kubeconfig === '' ? {} : { kubeconfig: global.kubeconfig }),
    env,
    clock,
    log: silentLogger,
    qps,
    burst,
    userAgent: `tke-eni/${release}`,
    requestTimeoutMs: callMs,
    loadKubeConfig: async () => (await import('../../kube/load-full-kube-config.ts')).loadFullKubeConfig(),
  });
}

/** Timeout of a call: a page of a large cluster needs time, and a user waits. */
const CALL_MS = 30_000;
/** Calls per second. Large lists have some hundred pages, and the API server works some milliseconds on each. */
const QPS = 50;

/** Opens a client for lists of a whole cluster; the caller must close it. @throws UserError NO_CLUSTER */
export async function openClusterReader(context: CommandContext): Promise<OpenKubeClient> {
  try {
    return await openCluster(context, { callMs: CALL_MS, qps: QPS, burst: QPS });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new UserError('NO_CLUSTER', error.message, 'give --kubeconfig', { cause: error });
  }
}
