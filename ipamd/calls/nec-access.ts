import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { decodeNec, type NecEntry } from '../cache/decode-nec.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';

/**
 * Reads a node's object: from the cache and the answers to own writes, or from the API server if the result of a write is
 * unknown. Undefined when there is none.
 */
export async function readNec(
  deps: NodeDeps,
  name: string,
  memory: NodeMemory,
  signal: AbortSignal,
): Promise<NecEntry | undefined> {
  if (!memory.mustRead) {
    const known = deps.necs.get(name);
    // A list that came back incomplete would make ipamd forget its own calls and resolve them while they are in flight.
    const isDoubtful = known === undefined && memory.calls.size > 0;
    if (!isDoubtful) return known;
  }
  const object = await deps.kube.get(NODE_ENI_CONFIGS, { name }, signal);
  memory.mustRead = false;
  // Read past the watch: nothing shows whether it has the same history.
  memory.baseline = undefined;
  if (object !== undefined) return noteNec(deps, object);
  deps.necs.forget(name);
  return undefined;
}

function noteNec({ necs }: Pick<NodeDeps, 'necs'>, object: KubeObject): NecEntry {
  const entry = decodeNec(object);
  necs.note(entry.name, entry);
  return entry;
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
  memory: NodeMemory,
  object: KubeObject,
  signal: AbortSignal,
): Promise<WriteResult> {
  signal.throwIfAborted();
  try {
    noteNec(deps, await deps.kube.update(NODE_ENI_CONFIGS, object, signal));
    deps.metrics.nodeWrites.inc({ result: 'written' });
    return 'written';
  } catch (error) {
    if (isKubeError(error, 'NOT_FOUND')) return 'gone';
    memory.mustRead = true;
    const isConflict = isKubeError(error, 'CONFLICT');
    if (!signal.aborted) deps.metrics.nodeWrites.inc({ result: isConflict ? 'conflict' : 'failed' });
    if (isConflict) return 'conflict';
    throw error;
  }
}
