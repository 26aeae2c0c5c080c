import type { DeletePreconditions, KubeClient, KubeObject, ObjectRef, ResourceType } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';

/** Options of a guarded update. */
type GuardedUpdateOptions = {
  /** Most writes; default 5. */
  readonly attempts?: number;
  readonly signal?: AbortSignal;
  /** The object as it was last read: tried first, which saves a read. */
  readonly current?: KubeObject;
};

/**
 * Two writers of one object succeed within a few attempts. More attempts mean that another writer constantly reverts
 * the change.
 */
const ATTEMPTS = 5;

/**
 * Changes an object with optimistic locking: reads it, calls `change` for the new state, and writes that on condition
 * that the object is unchanged since the read; after a conflict it starts again. Returns the object after the update;
 * undefined when it does not exist any more.
 *
 * `change` must keep fields that it does not know, and returns undefined when there is nothing to do. It may be called
 * several times and must decide from its argument alone each time.
 * @throws KubeError CONFLICT after the last attempt; whatever else the client throws
 */
export async function updateGuarded(
  client: KubeClient,
  type: ResourceType,
  ref: ObjectRef,
  change: (current: KubeObject) => KubeObject | undefined,
  options: GuardedUpdateOptions = {},
): Promise<KubeObject | undefined> {
  const { attempts = ATTEMPTS, signal } = options;
  let current = options.current ?? (await client.get(type, ref, signal));
  for (let attempt = 1; current !== undefined; attempt++) {
    const desired = change(current);
    if (desired === undefined) return current;
    try {
      return await client.update(type, guarded(desired, current), signal);
    } catch (error) {
      // Deleted, or deleted and created again, since the read. The next read shows which.
      const isOutdated = isKubeError(error, 'CONFLICT', 'NOT_FOUND');
      if (!isOutdated || attempt >= attempts) throw error;
    }
    current = await client.get(type, ref, signal);
  }
  return undefined;
}

/**
 * Sets resourceVersion and uid of the object that was read, whatever `change` did to the metadata, so that the write
 * applies to that object only.
 */
function guarded(desired: KubeObject, current: KubeObject): KubeObject {
  return { ...desired, metadata: { ...desired.metadata, ...guardsOf(current.metadata) } };
}

/** Returns uid and version of an object that was read: a write or a deletion with them is of that object and state only. */
export function guardsOf({ uid, resourceVersion }: DeletePreconditions): DeletePreconditions {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}
