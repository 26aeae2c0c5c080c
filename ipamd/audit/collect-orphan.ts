import type { CallContext, Cloud, CloudTask, Eni } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { OrphanOutcome } from '../../cloud/orphan-sweep.ts';

/**
 * Detaches an orphan from the foreign instance that it is on, if that instance does not run, and deletes it. Needs no
 * intent: the ENI is named by id, a second deletion finds nothing, and every request may be repeated (ADR 0017).
 * @throws CloudError
 */
export async function collectOrphan(
  cloud: Pick<Cloud, 'enis' | 'tasks' | 'instances'>,
  { eniId, attachment }: Eni,
  context: CallContext,
): Promise<OrphanOutcome> {
  if (attachment !== undefined) {
    const { instanceId } = attachment;
    const why = await whyInUse(cloud, instanceId, context);
    if (why !== undefined) return { kind: 'later', why };
    const detached = await detach(cloud, eniId, instanceId, context);
    if (detached.kind !== 'removed') return detached;
  }
  return await settle(cloud, await cloud.enis.delete(eniId, context), context);
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
  instanceId: string,
  context: CallContext,
): Promise<string | undefined> {
  const [instance] = await cloud.instances.describe([instanceId], context);
  if (instance !== undefined && AT_REST.includes(instance.state)) return undefined;
  const state = instance === undefined ? 'is not described' : `is ${instance.state}`;
  return `it is on ${instanceId}, which ${state} and is no node of this cluster; detach it by hand, or have its node join`;
}

async function detach(
  cloud: Pick<Cloud, 'enis' | 'tasks'>,
  eniId: string,
  instanceId: string,
  context: CallContext,
): Promise<OrphanOutcome> {
  try {
    return await settle(cloud, await cloud.enis.detach(eniId, instanceId, context), context);
  } catch (error) {
    // The ENI or its attachment was removed in between; the deletion shows which.
    if (isCloudError(error, 'gone')) return { kind: 'removed' };
    throw error;
  }
}

async function settle(cloud: Pick<Cloud, 'tasks'>, task: CloudTask, context: CallContext): Promise<OrphanOutcome> {
  const outcome = await cloud.tasks.settle(task, context);
  if (outcome.kind === 'done') return { kind: 'removed' };
  const why = outcome.kind === 'failed' ? outcome.reason : outcome.kind;
  return { kind: 'later', why: `${task.action}, task ${task.taskId}: ${why}` };
}
