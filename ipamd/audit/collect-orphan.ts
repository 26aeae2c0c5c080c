import type { CallContext, Cloud, CloudTask } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Orphan } from './find-orphans.ts';

/**
 * What became of an orphan. `later`: a call was accepted and its task still runs or failed, or the orphan may be in
 * use.
 */
export type OrphanOutcome =
  | { readonly kind: 'deleted' }
  | { readonly kind: 'later'; readonly why: string }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/**
 * Detaches an orphan from the foreign instance that it is on, if that instance does not run, and deletes it. Needs no
 * intent: the ENI is named by id, a second deletion finds nothing, and every request may be repeated (ADR 0017).
 */
export async function collectOrphan(
  cloud: Pick<Cloud, 'enis' | 'tasks' | 'instances'>,
  orphan: Orphan,
  context: CallContext,
): Promise<OrphanOutcome> {
  try {
    const inUse = await whyInUse(cloud, orphan, context);
    if (inUse !== undefined) return { kind: 'later', why: inUse };
    const detached = await detach(cloud, orphan, context);
    if (detached !== undefined) return detached;
    return await settle(cloud, await cloud.enis.delete(orphan.eniId, context), context);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    if (error.retry === 'gone') return { kind: 'deleted' };
    return { kind: 'refused', code: error.code, message: error.message };
  }
}

/** States of an instance on which nothing is in use. */
const AT_REST: readonly string[] = ['STOPPED', 'SHUTDOWN', 'TERMINATING', 'LAUNCH_FAILED'];

/**
 * Returns why an orphan may be in use; undefined when it cannot be. A running instance may use its ENIs, whatever
 * ipamd's objects contain: it may belong to another cluster with the same id, or be a node that a restored etcd does
 * not contain.
 */
async function whyInUse(
  cloud: Pick<Cloud, 'instances'>,
  { instanceId }: Orphan,
  context: CallContext,
): Promise<string | undefined> {
  if (instanceId === undefined) return undefined;
  const [instance] = await cloud.instances.describe([instanceId], context);
  if (instance !== undefined && AT_REST.includes(instance.state)) return undefined;
  const state = instance === undefined ? 'is not described' : `is ${instance.state}`;
  return `it is on ${instanceId}, which ${state} and is no node of this cluster; detach it by hand, or have its node join`;
}

/** Detaches the orphan; returns undefined when it can be deleted then. */
async function detach(
  cloud: Pick<Cloud, 'enis' | 'tasks'>,
  { eniId, instanceId }: Orphan,
  context: CallContext,
): Promise<OrphanOutcome | undefined> {
  if (instanceId === undefined) return undefined;
  try {
    const outcome = await settle(cloud, await cloud.enis.detach(eniId, instanceId, context), context);
    return outcome.kind === 'deleted' ? undefined : outcome;
  } catch (error) {
    // The ENI or its attachment was removed in between; the deletion shows which.
    if (isCloudError(error, 'gone')) return undefined;
    throw error;
  }
}

async function settle(
  cloud: Pick<Cloud, 'tasks'>,
  task: CloudTask,
  context: CallContext,
): Promise<Exclude<OrphanOutcome, { readonly kind: 'refused' }>> {
  const outcome = await cloud.tasks.settle(task, context);
  if (outcome.kind === 'done') return { kind: 'deleted' };
  const why = outcome.kind === 'failed' ? outcome.reason : outcome.kind;
  return { kind: 'later', why: `${task.action}, task ${task.taskId}: ${why}` };
}
