import { isKubeError } from '../../kube/kube-error.ts';
import { EVENTS } from '../../kube/resource-types.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { release } from '../../runtime/release.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';

/** A person waits. */
const CALL_MS = 10_000;
const PAGE = 500;
/** Kubernetes forgets events after an hour; a cluster with more than this has other worries. */
const MAX_PAGES = 8;
/** Asked one by one: the API server sorts out by one source at a time. */
const SOURCES = ['source=tke-eni-agent', 'source=tke-eni-ipamd', 'source=kubelet,type=Warning'] as const;

/** Reads events by our components and warnings of kubelet. @throws CliError NO_CLUSTER, FORBIDDEN */
export async function readClusterEvents({
  global,
  env,
  clock,
  signal,
}: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>): Promise<readonly unknown[]> {
  const { openKubeClient } = await import('../../kube/open-client.ts');
  try {
    const client = openKubeClient({
      ...(global.kubeconfig === '' ? {} : { kubeconfig: global.kubeconfig }),
      env,
      clock,
      log: silentLogger,
      qps: 10,
      burst: 20,
      userAgent: `tke-eni/${release}`,
      requestTimeoutMs: CALL_MS,
      loadKubeConfig: async () => (await import('../../kube/whole-kube-config.ts')).loadWholeKubeConfig(),
    });
    try {
      const items: unknown[] = [];
      for (const fieldSelector of SOURCES) {
        let next: string | undefined;
        for (let page = 0; page < MAX_PAGES && (page === 0 || next !== undefined); page++) {
          const query = { fieldSelector, limit: PAGE, ...(next === undefined ? {} : { continueToken: next }) };
          const list = await client.listPage(EVENTS, query, signal);
          items.push(...list.items);
          next = list.continueToken;
        }
      }
      return items;
    } finally {
      client.close();
    }
  } catch (error) {
    if (isKubeError(error, 'FORBIDDEN', 'UNAUTHORIZED')) {
      const next = 'use a kubeconfig that may list events: kubectl auth can-i list events -A';
      throw new CliError('FORBIDDEN', error.message, next, { cause: error });
    }
    if (isKubeError(error) || error instanceof ConfigError) {
      throw new CliError('NO_CLUSTER', error.message, 'look at --kubeconfig', { cause: error });
    }
    throw error;
  }
}
