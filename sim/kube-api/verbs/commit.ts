import { enforcePolicies } from '../admission/enforce-policies.ts';
import type { Api, ApiRequest } from '../api.ts';
import { conflict, invalid } from '../api-error.ts';
import { afterUpdate, toManagedFields, type Writer } from '../apply/managed-fields.ts';
import { isEqual, isObject, type KubeObject, withMetadata, without } from '../object.ts';
import { builtInMergeKeys, type MergeKeys, mergeKeysOf } from '../patch/merge-keys.ts';
import { type ApiResource, groupVersion, storageKey } from '../resources/api-resource.ts';
import { type Cause, forbiddenValue, invalidValue } from '../resources/causes.ts';
import { customFaults, shape } from '../resources/custom-resource.ts';
import { collectAfterDeletion } from './garbage.ts';
import { isDryRun } from './is-dry-run.ts';
import { warnOfUnknown } from './warnings.ts';

/** An object that was written, or would have been with `dryRun`. */
export type Committed = { readonly object: KubeObject; readonly warnings: readonly string[] };

/** Returns how the lists of a resource's objects merge. */
export function mergeKeysFor(resource: ApiResource): MergeKeys {
  return resource.schema === undefined ? builtInMergeKeys : mergeKeysOf(resource.schema);
}

/** Says who writes, for managedFields. */
export function writerOf(api: Api, request: ApiRequest, operation: 'Apply' | 'Update'): Writer {
  return {
    manager: request.query.get('fieldManager') ?? (request.userAgent.split('/')[0] || 'unknown'),
    operation,
    apiVersion: groupVersion(request.resource),
    subresource: request.subresource,
    time: timestamp(api.nowMs()),
  };
}

/** Writes a moment as Kubernetes does: seconds, UTC. */
export function timestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

/**
 * Writes a new state of an object that is there, by the rules of updates: what clients may not change stays, generation
 * counts, a write without effect changes nothing, the last finalizer of a deleted object lets it go.
 * @throws ApiError Conflict, Invalid
 */
export function commitUpdate(api: Api, request: ApiRequest, old: KubeObject, wanted: KubeObject): Committed {
  const { resource, subresource } = request;
  const { name } = old.metadata;
  const { resourceVersion, uid } = wanted.metadata;
  if (uid !== undefined && uid !== '' && uid !== old.metadata.uid) {
    const key = `/registry/${resource.group === '' ? '' : `${resource.group}/`}${resource.plural}/${old.metadata.namespace === undefined ? '' : `${old.metadata.namespace}/`}${name}`;
    const why = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`;
    throw conflict(resource, name, why);
  }
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== old.metadata.resourceVersion) {
    throw conflict(resource, name);
  }
  const kept = keepImmutable(old, restrictToSubresource(resource, subresource, old, wanted));
  const prepared = prepare(resource, subresource, kept, old);
  const { object, faults: shortages } =
    subresource === '' ? allocated(api, resource, prepared) : { object: prepared, faults: [] };
  const shaped = resource.schema === undefined ? { object, unknown: [] } : shape(object, resource.schema);
  const warnings = warnOfUnknown(request, shaped.unknown);
  const counted = withGeneration(resource, old, shaped.object);
  throwIfAny(resource, name, [
    ...metadataFaults(counted, old),
    ...contentFaults(resource, counted, old, subresource),
    ...shortages,
  ]);
  enforcePolicies(api, request, { operation: 'UPDATE', object: counted, old });
  const next = withManagers(api, request, old, counted);
  if (isEqual(next, old)) return { object: old, warnings };
  if (isDryRun(request)) return { object: next, warnings };
  if (isFinished(next)) {
    removeNow(api, resource, next);
    // The writer gets what it wrote, not the revision of the removal.
    return { object: next, warnings };
  }
  return { object: api.store.put(storageKey(resource), next), warnings };
}

function throwIfAny(resource: ApiResource, name: string, faults: readonly Cause[]): void {
  if (faults.length > 0) throw invalid(resource, name, faults);
}

/** Removes an object from the store and lets what it owned follow. */
export function removeNow(api: Api, resource: ApiResource, object: KubeObject): KubeObject {
  const last = api.store.remove(storageKey(resource), object);
  collectAfterDeletion(api, resource, last);
  return last;
}

/** A deleted object that nothing holds any more. */
function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers ?? []).length === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0
  );
}

/** A write to `status` changes status only; a write to the object leaves status alone where it is a subresource. */
function restrictToSubresource(
  resource: ApiResource,
  subresource: string,
  old: KubeObject,
  wanted: KubeObject,
): KubeObject {
  if (!resource.subresources.includes('status')) return wanted;
  if (subresource === '') return withField(wanted, 'status', old['status']);
  if (subresource !== 'status') return wanted;
  // Built-in resources let metadata through with the status; custom ones do not.
  const base = resource.schema === undefined ? { ...wanted, spec: old['spec'] } : old;
  const { spec, ...rest } = withField(base, 'status', wanted['status']);
  return spec === undefined ? { ...rest } : { ...rest, spec };
}

function withField(object: KubeObject, field: string, value: unknown): KubeObject {
  return value === undefined ? without(object, field) : { ...object, [field]: value };
}

function keepImmutable(old: KubeObject, wanted: KubeObject): KubeObject {
  const { metadata } = old;
  return withMetadata(
    { ...wanted, apiVersion: old.apiVersion, kind: old.kind },
    {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: metadata.uid,
      generateName: metadata.generateName,
      creationTimestamp: metadata.creationTimestamp,
      deletionTimestamp: metadata.deletionTimestamp,
      deletionGracePeriodSeconds: metadata.deletionGracePeriodSeconds,
      generation: metadata.generation,
      resourceVersion: metadata.resourceVersion,
      ...emptyGone(wanted),
    },
  );
}

/** Empty lists and maps of metadata are not kept. */
function emptyGone({ metadata }: KubeObject) {
  const isEmpty = (value: unknown) => value === null || (isObject(value) && Object.keys(value).length === 0);
  return {
    ...(isEmpty(metadata.labels) ? { labels: undefined } : {}),
    ...(isEmpty(metadata.annotations) ? { annotations: undefined } : {}),
    ...((metadata.finalizers ?? []).length === 0 ? { finalizers: undefined } : {}),
    ...((metadata.ownerReferences ?? []).length === 0 ? { ownerReferences: undefined } : {}),
  };
}

function withGeneration(resource: ApiResource, old: KubeObject, next: KubeObject): KubeObject {
  if (resource.generation === 'none') return next;
  const skipped = resource.generation === 'all' ? ['metadata'] : ['metadata', 'status'];
  const isSame = isEqual(without(old, ...skipped), without(next, ...skipped));
  return isSame ? next : withMetadata(next, { generation: (old.metadata.generation ?? 0) + 1 });
}

function metadataFaults(next: KubeObject, old: KubeObject): readonly Cause[] {
  if (old.metadata.deletionTimestamp === undefined) return [];
  const added = (next.metadata.finalizers ?? []).filter((one) => !(old.metadata.finalizers ?? []).includes(one));
  if (added.length === 0) return [];
  const shown = `[]string{${added.map((one) => JSON.stringify(one)).join(', ')}}`;
  const message = `no new finalizers can be added if the object is being deleted, found new finalizers ${shown}`;
  return [forbiddenValue('metadata.finalizers', message)];
}

/** Lists what is wrong with an object beside its metadata. */
export function contentFaults(
  resource: ApiResource,
  object: KubeObject,
  old: KubeObject | undefined,
  subresource: string,
): readonly Cause[] {
  if (resource.schema !== undefined) return customFaults(object, old, resource.schema);
  if (subresource === 'status') return resource.strategy.validateStatus?.(object) ?? [];
  return subresource === '' ? (resource.strategy.validate?.(object, old) ?? []) : [];
}

/** Gives an object what all objects of its resource share; what cannot be had is a fault. */
export function allocated(
  api: Api,
  resource: ApiResource,
  object: KubeObject,
): { readonly object: KubeObject; readonly faults: readonly Cause[] } {
  const { allocate } = resource.strategy;
  if (allocate === undefined) return { object, faults: [] };
  const { name, namespace } = object.metadata;
  const isOther = ({ metadata }: KubeObject): boolean => metadata.name !== name || metadata.namespace !== namespace;
  return allocate(object, api.store.list(storageKey(resource)).filter(isOther));
}

function prepare({ strategy }: ApiResource, subresource: string, object: KubeObject, old: KubeObject): KubeObject {
  if (subresource === '') return strategy.prepareUpdate?.(object, old) ?? object;
  return subresource === 'status' ? (strategy.prepareStatus?.(object) ?? object) : object;
}

function withManagers(api: Api, request: ApiRequest, old: KubeObject, next: KubeObject): KubeObject {
  const isApply = request.contentType.startsWith('application/apply-patch');
  if (isApply) return next;
  if (next.metadata.managedFields?.length === 0) return withMetadata(next, { managedFields: undefined });
  if (old.metadata.managedFields === undefined) return withMetadata(next, { managedFields: undefined });
  const managers = afterUpdate(old, next, writerOf(api, request, 'Update'), mergeKeysFor(request.resource));
  const isSame = isEqual(
    withMetadata(next, { managedFields: undefined }),
    withMetadata(old, { managedFields: undefined }),
  );
  return withMetadata(next, { managedFields: isSame ? old.metadata.managedFields : toManagedFields(managers) });
}

/** Makes the fault for a write without the resourceVersion that the resource wants. */
export function missingResourceVersion(): Cause {
  return invalidValue('metadata.resourceVersion', 0, 'must be specified for an update');
}
