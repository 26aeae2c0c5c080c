import type { FieldTable } from '../../crd/field.ts';
import { INTENT } from '../../crd/intent.ts';
import { CLOUD_FINALIZER } from '../../crd/names.ts';
import { ADDRESS, ENI_INFO, type NodeEniConfigStatus, STATUS } from '../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';

/**
 * Returns the whole object with ipamd's status in it, and with the finalizer that keeps the object until nothing is
 * left in the cloud. Unknown fields stay, those of ENIs, addresses and intents included.
 */
export function withStatus(object: KubeObject, status: NodeEniConfigStatus): KubeObject {
  return { ...withCloudFinalizer(object, status), status: mergeStatus(object['status'], status) };
}

/** Returns the object without ipamd's finalizer, once nothing of it is left in the cloud. */
export function withoutCloudFinalizer(object: KubeObject): KubeObject {
  const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== CLOUD_FINALIZER);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** Tells whether ipamd's finalizer is missing on an object that still has something in the cloud. */
export function lacksCloudFinalizer(object: KubeObject, status: NodeEniConfigStatus): boolean {
  return withCloudFinalizer(object, status) !== object;
}

/**
 * Adds the finalizer, if something is in the cloud. The API server refuses a new finalizer on an object that is being
 * deleted.
 */
function withCloudFinalizer(object: KubeObject, status: NodeEniConfigStatus): KubeObject {
  const { finalizers = [], deletionTimestamp } = object.metadata;
  const isEmpty = (status.eniInfos ?? []).length + (status.intents ?? []).length === 0;
  if (isEmpty || deletionTimestamp !== undefined || finalizers.includes(CLOUD_FINALIZER)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, CLOUD_FINALIZER] } };
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
