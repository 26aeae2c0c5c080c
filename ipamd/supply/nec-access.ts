import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { compareVersions } from '../../kube/compare-versions.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import { decodeNec, type NecEntry } from '../cache/decode-nec.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';

/** The resource of NodeENIConfigs. */
export const NECS = resourceTypeOf(NODE_ENI_CONFIG_KIND);

/**
 * Reads a node's object: from the cache, or the answer to the last own write if that is newer, or from the API server
 * if the result of a write is unknown. Undefined when there is none.
 */
export async function readNec(
  deps: NodeDeps,
  name: string,
  memory: NodeMemory,
  signal: AbortSignal,
): Promise<NecEntry | undefined> {
  const cached = deps.necs.get(name);
  const { written } = memory;
  if (!memory.mustRead) {
    // A list that came back incomplete would make ipamd forget its own calls and resolve them while they are in flight.
    const isDoubtful = cached === undefined && memory.calls.size > 0;
    if (written === undefined && !isDoubtful) return cached;
    // Not in the cache: deleted since, or not yet received.
    const order =
      cached === undefined || written === undefined
        ? undefined
        : compareVersions(cached.object.metadata, written.metadata);
    if (cached !== undefined && order !== undefined) {
      if (order < 0 && written !== undefined) return decodeNec(written);
      memory.written = undefined;
      return cached;
    }
  }
  const object = await deps.kube.get(NECS, { name }, signal);
  memory.mustRead = false;
  memory.written = object;
  // Read past the watch: nothing shows whether it has the same history.
  memory.baseline = undefined;
  return object === undefined ? undefined : decodeNec(object);
}

/** Result of a write. `conflict`: another client wrote first; read and decide again. */
type WriteResult = 'written' | 'conflict' | 'gone';

/**
 * Replaces a node's object, guarded by the resourceVersion that it was read with.
 * @throws KubeError for anything but a conflict; the next pass then reads from the API server, because the write may
 * have happened.
 */
export async function writeNec(
  deps: NodeDeps,
  name: string,
  memory: NodeMemory,
  object: KubeObject,
  signal: AbortSignal,
): Promise<WriteResult> {
  signal.throwIfAborted();
  try {
    memory.written = await deps.kube.update(NECS, object, signal);
    deps.observe.onWrite?.({ node: name, result: 'written' });
    return 'written';
  } catch (error) {
    if (isKubeError(error, 'NOT_FOUND')) return 'gone';
    memory.mustRead = true;
    const isConflict = isKubeError(error, 'CONFLICT');
    if (!signal.aborted) deps.observe.onWrite?.({ node: name, result: isConflict ? 'conflict' : 'failed' });
    if (isConflict) return 'conflict';
    throw error;
  }
}
