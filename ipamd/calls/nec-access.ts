import type { FieldTable } from '../../crd/field.ts';
import { INTENT } from '../../crd/intent.ts';
import { CLOUD_FINALIZER } from '../../crd/names.ts';
import { ADDRESS, ENI_INFO, type NodeEniConfigStatus, STATUS } from '../../crd/node-eni-config-fields.ts';
import { withFinalizer } from '../../kube/finalizers.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
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
  deps.necs.forget(name);
  return object === undefined ? undefined : noteNec(deps, object);
}

function noteNec({ necs }: Pick<NodeDeps, 'necs'>, object: KubeObject): NecEntry {
  const entry = decodeNec(object);
  necs.note(entry.name, entry);
  return entry;
}

/** Result of a write. `conflict`: another client wrote first; read and decide again. */
export type WriteResult = 'written' | 'conflict' | 'gone';

/**
 * Replaces a node's object, guarded by the resourceVersion that it was read with. After a conflict the next pass decides on
 * what the watch has brought since, and reads from the API server only where that is nothing.
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
    const isConflict = isKubeError(error, 'CONFLICT');
    memory.mustRead = !(isConflict && hasMovedOn(deps, object));
    if (!signal.aborted) deps.metrics.nodeWrites.inc({ result: isConflict ? 'conflict' : 'failed' });
    if (isConflict) return 'conflict';
    throw error;
  }
}

/** Reports whether the watch has brought a later state of an object than this one. */
function hasMovedOn({ necs }: Pick<NodeDeps, 'necs'>, { metadata }: KubeObject): boolean {
  const known = necs.get(metadata.name);
  return known !== undefined && known.object.metadata.resourceVersion !== metadata.resourceVersion;
}

/**
 * Returns the whole object with ipamd's status in it, and with the finalizer that keeps the object until nothing is
 * left in the cloud. Unknown fields stay, those of ENIs, addresses and intents included.
 */
export function withStatus(object: KubeObject, status: NodeEniConfigStatus): KubeObject {
  return { ...withCloudFinalizer(object, status), status: mergeStatus(object['status'], status) };
}

/** Reports whether ipamd's finalizer is missing on an object that still has something in the cloud. */
export function lacksCloudFinalizer(object: KubeObject, status: NodeEniConfigStatus): boolean {
  return withCloudFinalizer(object, status) !== object;
}

/**
 * Adds the finalizer, if something is in the cloud. The API server refuses a new finalizer on an object that is being
 * deleted.
 */
function withCloudFinalizer(object: KubeObject, status: NodeEniConfigStatus): KubeObject {
  const isEmpty = (status.eniInfos ?? []).length + (status.intents ?? []).length === 0;
  if (isEmpty || object.metadata.deletionTimestamp !== undefined) return object;
  return withFinalizer(object, CLOUD_FINALIZER);
}

/** Merges the decided status into the status as it was read. */
function mergeStatus(raw: unknown, status: NodeEniConfigStatus): JsonObject {
  const before = recordOf(raw);
  return {
    ...mergeFields(before, status, STATUS),
    ...present(
      'eniInfos',
      status.eniInfos?.map((eni) => {
        const existing = find(before['eniInfos'], 'eniID', eni.eniID);
        const addresses = eni.addresses?.map((address) =>
          mergeFields(existingAddress(existing, address), address, ADDRESS),
        );
        return { ...mergeFields(existing, eni, ENI_INFO), ...present('addresses', addresses) };
      }),
    ),
    ...present(
      'intents',
      status.intents?.map((intent) => mergeFields(find(before['intents'], 'id', intent.id), intent, INTENT)),
    ),
  };
}

/** Returns the unknown fields of an address. They belong to one assignment and are dropped with it. */
function existingAddress(
  eni: JsonObject,
  { ip, assignmentID }: { readonly ip: string; readonly assignmentID: string },
): JsonObject {
  const existing = find(eni['addresses'], 'ip', ip);
  return existing['assignmentID'] === assignmentID ? existing : {};
}

function mergeFields(before: JsonObject, after: JsonObject, fields: FieldTable): JsonObject {
  const unknownFields = Object.entries(before).filter(([key]) => !Object.hasOwn(fields, key));
  const ownFields = Object.entries(after).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...unknownFields, ...ownFields]);
}

function present(key: string, value: unknown): JsonObject {
  return value === undefined ? {} : { [key]: value };
}

function find(list: unknown, key: string, value: string): JsonObject {
  const items = listOf(list);
  return items.filter(isRecord).find((item) => item[key] === value) ?? {};
}
