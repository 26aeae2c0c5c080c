import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Target, TargetPort } from '../../cloud/targets.ts';

/** Listeners of a load balancer, by their ids. */
type ReadListeners = {
  readonly loadBalancerId: string;
  /** Those that are the owner's for sure. */
  readonly own: readonly string[];
  /** Those that may be the owner's, or another client's. */
  readonly others: readonly string[];
};

/** Most listeners that are read one by one. */
const MAX_ALONE = 10;

/**
 * Reads the targets of listeners. One of another client that is deleted meanwhile, or whose targets cannot be decoded, fails
 * nothing: it is in `unreadIds`. @throws CloudError, also when a listener of the owner cannot be read
 */
export async function readTargets(
  targets: Pick<TargetPort, 'list'>,
  { loadBalancerId, own, others }: ReadListeners,
  context: CallContext,
): Promise<{ readonly all: readonly Target[]; readonly unreadIds: readonly string[] }> {
  const list = async (ids: readonly string[]): Promise<readonly Target[]> =>
    ids.length === 0 ? [] : await targets.list(loadBalancerId, ids, context);
  try {
    return { all: await list([...own, ...others]), unreadIds: [] };
  } catch (error) {
    if (others.length === 0 || !isOfListener(error)) throw error;
  }
  const all = [...(await list(own))];
  const unreadIds = others.slice(MAX_ALONE);
  for (const id of others.slice(0, MAX_ALONE))
    try {
      all.push(...(await list([id])));
    } catch (error) {
      if (!isOfListener(error)) throw error;
      unreadIds.push(id);
    }
  return { all, unreadIds };
}

/** Whether an error may be that of one listener alone. */
function isOfListener(error: unknown): boolean {
  return isCloudError(error, 'gone', 'never') || (isCloudError(error) && error.code === 'BAD_ANSWER');
}
