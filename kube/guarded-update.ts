import type { KubeClient, KubeObject, ObjectRef, ResourceType } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';

/** How a guarded update goes about it. */
export type GuardedUpdateOptions = {
  /** Writes at most; default 5. */
  readonly attempts?: number;
  readonly signal?: AbortSignal;
  /** What was read last: tried first, which saves a read. */
  readonly current?: KubeObject;
};

/** Two writers that work on an object settle within a few rounds; more means that somebody fights us. */
const ATTEMPTS = 5;

/**
 * Changes an object as it is now, and no other: reads it, asks `change` for the new one, and writes that on condition
 * that nobody wrote in between; if somebody did, begins again. Returns the object as it is after that; undefined when
 * it is gone.
 *
 * `change` keeps what it does not know, and returns undefined when there is nothing to do. It may be called several
 * times and must decide anew each time.
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
    const wanted = change(current);
    if (wanted === undefined) return current;
    try {
      return await client.update(type, guarded(wanted, current), signal);
    } catch (error) {
      // Gone between read and write, or gone and made anew: the read tells.
      const isOutdated = isKubeError(error, 'CONFLICT', 'NOT_FOUND');
      if (!isOutdated || attempt >= attempts) throw error;
    }
    current = await client.get(type, ref, signal);
  }
  return undefined;
}

/** The write must meet the very object that was read, whatever `change` did to its metadata. */
function guarded(wanted: KubeObject, current: KubeObject): KubeObject {
  const { resourceVersion, uid } = current.metadata;
  const guards = {
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(uid === undefined ? {} : { uid }),
  };
  return { ...wanted, metadata: { ...wanted.metadata, ...guards } };
}
