import { isKubeError } from '../../../kube/kube-error.ts';
import { listPages } from '../../../kube/list-pages.ts';
import { EVENTS } from '../../../kube/resource-types.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { openCluster } from '../../command/open-cluster.ts';

/** Timeout of a call, ms. It is short: a person waits. */
const CALL_MS = 10_000;
/** Largest number of pages read for each source, 4,000 events. Kubernetes keeps events for an hour only. */
const MAX_PAGES = 8;
/** Field selectors, one for each call: the API server filters by one source at a time. */
const SOURCES = ['source=tke-eni-agent', 'source=tke-eni-ipamd', 'source=kubelet,type=Warning'] as const;

/** Reads events of tke-eni components and warnings of kubelet. @throws UserError NO_CLUSTER, FORBIDDEN */
export async function readClusterEvents(
  context: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>,
): Promise<readonly unknown[]> {
  try {
    const client = await openCluster(context, { callMs: CALL_MS, qps: 10, burst: 20 });
    try {
      const items: unknown[] = [];
      for (const fieldSelector of SOURCES) {
        let pages = 0;
        for await (const page of listPages(client, EVENTS, { fieldSelector }, context.signal)) {
          items.push(...page.items);
          if (++pages === MAX_PAGES) break;
        }
      }
      return items;
    } finally {
      client.close();
    }
  } catch (error) {
    if (isKubeError(error, 'FORBIDDEN', 'UNAUTHORIZED')) {
      const next = 'use a kubeconfig that may list events: kubectl auth can-i list events -A';
      throw new UserError('FORBIDDEN', error.message, next, { cause: error });
    }
    if (isKubeError(error) || error instanceof ConfigError) {
      throw new UserError('NO_CLUSTER', error.message, 'look at --kubeconfig', { cause: error });
    }
    throw error;
  }
}
