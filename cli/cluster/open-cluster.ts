import type { OpenKubeClient } from '../../kube/open-client.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { release } from '../../runtime/release.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';

/** A page of a large cluster may take its time; a person waits. */
const CALL_MS = 30_000;
/** A reader of large lists: some hundred pages, each of which the API server has to itself for some milliseconds. */
const QPS = 50;

/** Opens a client of the API server that the kubeconfig names. The library is loaded only now. @throws CliError NO_CLUSTER */
export async function openCluster({
  global,
  env,
  clock,
}: Pick<CommandContext, 'global' | 'env' | 'clock'>): Promise<OpenKubeClient> {
  const { openKubeClient } = await import('../../kube/open-client.ts');
  try {
    return openKubeClient({
      ...(global.kubeconfig === '' ? {} : { kubeconfig: global.kubeconfig }),
      env,
      clock,
      log: silentLogger,
      qps: QPS,
      burst: QPS,
      userAgent: `tke-eni/${release}`,
      requestTimeoutMs: CALL_MS,
      loadKubeConfig: async () => (await import('../../kube/whole-kube-config.ts')).loadWholeKubeConfig(),
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError('NO_CLUSTER', error.message, 'give --kubeconfig', { cause: error });
  }
}
