import type { Logger } from '../runtime/log.ts';
import type { KubeClient, ResourceType } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';

/**
 * Reports whether the cluster has objects of a kind that is not ours, and logs `forbidden` where they may not be read.
 * Undefined when the API server does not answer.
 */
export async function hasKind(
  { client, log }: { readonly client: Pick<KubeClient, 'listPage'>; readonly log: Pick<Logger, 'warn'> },
  type: ResourceType,
  forbidden: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  try {
    await client.listPage(type, { limit: 1 }, signal);
    return true;
  } catch (error) {
    if (!isKubeError(error, 'NOT_FOUND', 'FORBIDDEN')) return undefined;
    if (error.code === 'FORBIDDEN') log.warn(forbidden, { error });
    return false;
  }
}
