import type { OpenKubeClient } from '../../../kube/open-client.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { openCluster } from '../../command/open-cluster.ts';

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
