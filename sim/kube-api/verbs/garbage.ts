import type { Api } from '../api.ts';
import type { KubeObject, OwnerReference } from '../object.ts';
import { withMetadata } from '../object.ts';
import { type ApiResource, groupVersion, storageKey } from '../resources/api-resource.ts';
import { DEFINITIONS, resourcesOf } from '../resources/registry.ts';

/**
 * Does what controllers do in a cluster after an object went: deletes what it owned, and the objects of a definition.
 * With many objects this looks at all of them: cheap enough for tests.
 */
export function collectAfterDeletion(api: Api, resource: ApiResource, gone: KubeObject): void {
  if (resource.schema !== undefined) endDefinition(api, `/${resource.plural}.${resource.group}`);
  if (!api.collectsGarbage || gone.metadata.uid === undefined) return;
  for (const owner of gone.metadata.ownerReferences ?? []) finishForeground(api, owner.uid);
  for (const kind of distinct(api.registry.all())) {
    for (const object of api.store.list(storageKey(kind))) orphanOrDelete(api, kind, object, gone.metadata.uid);
  }
}

/**
 * Deletes an object whose owners are all gone already, as the garbage collector does with one that was made too late.
 * Owners are looked up by their names, so it costs little.
 */
export function collectIfOrphaned(api: Api, resource: ApiResource, object: KubeObject): void {
  const owners = object.metadata.ownerReferences ?? [];
  if (!api.collectsGarbage || owners.length === 0) return;
  if (owners.every((owner) => !isThere(api, owner, object.metadata.namespace))) deleteQuietly(api, resource, object);
}

function isThere(api: Api, { apiVersion, kind, name, uid }: OwnerReference, namespace: string | undefined): boolean {
  const resource = api.registry.all().find((one) => one.kind === kind && groupVersion(one) === apiVersion);
  // Of a kind that this server does not serve nothing can be said: the object stays.
  if (resource === undefined) return true;
  const key = `${resource.namespaced ? (namespace ?? '') : ''}/${name}`;
  return api.store.get(storageKey(resource), key)?.metadata.uid === uid;
}

/** Finalizer of an object whose dependents go first. */
export const FOREGROUND = 'foregroundDeletion';

/** Deletes what an object that is deleted in the foreground owns, and then itself, unless something is held. */
export function collectForeground(api: Api, owner: KubeObject): void {
  const { uid } = owner.metadata;
  if (!api.collectsGarbage || uid === undefined) return;
  for (const { resource, object } of dependentsOf(api, uid)) deleteQuietly(api, resource, object);
  finishForeground(api, uid);
}

type Placed = { readonly resource: ApiResource; readonly object: KubeObject };

function dependentsOf(api: Api, uid: string): readonly Placed[] {
  return placed(api, (object) => (object.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid));
}

function placed(api: Api, wants: (object: KubeObject) => boolean): readonly Placed[] {
  return distinct(api.registry.all()).flatMap((resource) =>
    api.store.list(storageKey(resource)).flatMap((object) => (wants(object) ? [{ resource, object }] : [])),
  );
}

function finishForeground(api: Api, uid: string): void {
  const [owner] = placed(api, (object) => object.metadata.uid === uid);
  const finalizers = owner?.object.metadata.finalizers ?? [];
  if (owner === undefined || owner.object.metadata.deletionTimestamp === undefined) return;
  if (!finalizers.includes(FOREGROUND) || dependentsOf(api, uid).length > 0) return;
  const others = finalizers.filter((one) => one !== FOREGROUND);
  const freed = withMetadata(owner.object, { finalizers: others.length > 0 ? others : undefined });
  if (others.length > 0) api.store.put(storageKey(owner.resource), freed);
  else collectAfterDeletion(api, owner.resource, api.store.remove(storageKey(owner.resource), freed));
}

/** Resources of several versions are stored once. */
function distinct(resources: readonly ApiResource[]): readonly ApiResource[] {
  return [...new Map(resources.map((one) => [storageKey(one), one])).values()];
}

function orphanOrDelete(api: Api, resource: ApiResource, object: KubeObject, ownerUid: string): void {
  const owners = object.metadata.ownerReferences ?? [];
  if (!owners.some((owner) => owner.uid === ownerUid)) return;
  const others = owners.filter((owner) => owner.uid !== ownerUid);
  if (others.length > 0) api.store.put(storageKey(resource), withMetadata(object, { ownerReferences: others }));
  else deleteQuietly(api, resource, object);
}

/** Deletes as a controller would: finalizers and grace are honoured. */
export function deleteQuietly(api: Api, resource: ApiResource, object: KubeObject): void {
  const grace = resource.strategy.graceSeconds?.(object, undefined) ?? 0;
  if (grace === 0 && (object.metadata.finalizers ?? []).length === 0) {
    collectAfterDeletion(api, resource, api.store.remove(storageKey(resource), object));
  } else if (object.metadata.deletionTimestamp === undefined) {
    const at = new Date(api.nowMs() + grace * 1000).toISOString().slice(0, 19);
    const marks = { deletionTimestamp: `${at}Z`, deletionGracePeriodSeconds: grace };
    api.store.put(storageKey(resource), withMetadata(object, marks));
  }
}

/** Finalizer of a definition whose objects go first. */
const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io';

/**
 * Deletes the objects of a definition, and the definition after the last of them: objects with finalizers keep it. What
 * it serves can be read, changed and deleted meanwhile, and not created. Returns the definition that waits.
 */
export function terminateDefinition(api: Api, definition: KubeObject): KubeObject | undefined {
  const { name, finalizers = [], deletionTimestamp } = definition.metadata;
  if (deletionTimestamp !== undefined) return definition;
  const at = `${new Date(api.nowMs()).toISOString().slice(0, 19)}Z`;
  const marks = { deletionTimestamp: at, deletionGracePeriodSeconds: 0, finalizers: [...finalizers, CLEANUP] };
  api.store.put(DEFINITIONS, withMetadata(definition, marks));
  const [custom] = resourcesOf(definition);
  if (custom !== undefined) for (const object of api.store.list(storageKey(custom))) deleteQuietly(api, custom, object);
  endDefinition(api, `/${name}`);
  return api.store.get(DEFINITIONS, `/${name}`);
}

/** Removes a definition that is being deleted and has no objects any more. */
function endDefinition(api: Api, key: string): void {
  const definition = api.store.get(DEFINITIONS, key);
  if (definition?.metadata.deletionTimestamp === undefined) return;
  const [custom] = resourcesOf(definition);
  if (custom !== undefined && api.store.list(storageKey(custom)).length > 0) return;
  const others = (definition.metadata.finalizers ?? []).filter((one) => one !== CLEANUP);
  if (others.length === 0) api.store.remove(DEFINITIONS, definition);
}

/** Empties a namespace that is being deleted and lets it go once nothing is left in it. */
export function emptyNamespace(api: Api, namespaces: ApiResource, name: string): void {
  const kinds = distinct(api.registry.all()).filter((kind) => kind.namespaced);
  for (const kind of kinds) {
    for (const object of api.store.list(storageKey(kind), name)) deleteQuietly(api, kind, object);
  }
  const isEmpty = kinds.every((kind) => api.store.list(storageKey(kind), name).length === 0);
  const namespace = api.store.get(storageKey(namespaces), `/${name}`);
  if (isEmpty && namespace !== undefined && (namespace.metadata.finalizers ?? []).length === 0) {
    api.store.remove(storageKey(namespaces), namespace);
  }
}
