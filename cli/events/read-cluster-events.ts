import { isKubeError } from '../../kube/kube-error.ts';
import { EVENTS } from '../../kube/resource-types.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command.ts';
import { openCluster } from '../open-cluster.ts';

/** A person waits. */
const CALL_MS = 10_000;
const PAGE = 500;
/** Kubernetes forgets events after an hour; a cluster with more than this has other worries. */
const MAX_PAGES = 8;
/** Asked one by one: the API server sorts out by one source at a time. */
const SOURCES = ['source=tke-eni-agent', 'source=tke-eni-ipamd', 'source=kubelet,type=Warning'] as const;

/** Reads events by our components and warnings of kubelet. @throws CliError NO_CLUSTER, FORBIDDEN */
export async function readClusterEvents(
  context: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>,
): Promise<readonly unknown[]> {
  try {
    const client = await openCluster(context, { callMs: CALL_MS, qps: 10, burst: 20 });
    try {
      const items: unknown[] = [];
      for (const fieldSelector of SOURCES) {
        let next: string | undefined;
        for (let page = 0; page < MAX_PAGES && (page === 0 || next !== undefined); page++) {
          const query = { fieldSelector, limit: PAGE, ...(next === undefined ? {} : { continueToken: next }) };
          const list = await client.listPage(EVENTS, query, context.signal);
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
