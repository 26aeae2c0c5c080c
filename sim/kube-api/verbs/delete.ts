import { enforcePolicies } from '../admission/enforce-policies.ts';
import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { conflict } from '../api-error.ts';
import { isObject, type JsonObject, type KubeObject, withMetadata } from '../object.ts';
import { type ApiResource, groupVersion, storageKey } from '../resources/api-resource.ts';
import { DEFINITIONS } from '../resources/registry.ts';
import { removeNow } from './commit.ts';
import { collectForeground, deleteQuietly, emptyNamespace, FOREGROUND, terminateDefinition } from './garbage.ts';
import { listObjects } from './list.ts';
import { findOrThrow } from './update.ts';

/** Answers a DELETE of one object. @throws ApiError NotFound, Conflict when a precondition does not hold */
export function remove(api: Api, request: ApiRequest): ApiAnswer {
  const { resource, query } = request;
  const options = isObject(request.body) ? request.body : {};
  const object = findOrThrow(api, request);
  checkPreconditions(resource, object, options);
  enforcePolicies(api, request, { operation: 'DELETE', old: object });
  const asked = options['gracePeriodSeconds'] ?? query.get('gracePeriodSeconds');
  const policy = String(options['propagationPolicy'] ?? query.get('propagationPolicy') ?? 'Background');
  const isDryRun =
    query.getAll('dryRun').includes('All') || (Array.isArray(options['dryRun']) && options['dryRun'].includes('All'));
  const wanted = { grace: asked === null ? undefined : Number(asked), policy };
  if (isDryRun) return success(resource, object);
  return removeObject(api, resource, object, wanted);
}

function checkPreconditions(resource: ApiResource, object: KubeObject, options: JsonObject): void {
  const { uid, resourceVersion } = (isObject(options['preconditions']) ? options['preconditions'] : {}) as Record<
    string,
    unknown
  >;
  const { name } = object.metadata;
  // Of preconditions the real server speaks by kind, not by resource.
  const about = { group: resource.group, plural: resource.kind, kind: resource.kind };
  if (uid !== undefined && uid !== object.metadata.uid) {
    throw conflict(
      about,
      name,
      `the UID in the precondition (${String(uid)}) does not match the UID in record (${object.metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
    throw conflict(
      about,
      name,
      `the ResourceVersion in the precondition (${String(resourceVersion)}) does not match the ResourceVersion in record (${object.metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

type Wanted = { readonly grace: number | undefined; readonly policy: string };

function removeObject(api: Api, resource: ApiResource, object: KubeObject, { grace, policy }: Wanted): ApiAnswer {
  if (storageKey(resource) === DEFINITIONS) {
    const waiting = terminateDefinition(api, object);
    return waiting === undefined ? success(resource, object) : { status: 200, body: waiting };
  }
  if (storageKey(resource) === '/namespaces') return terminateNamespace(api, resource, object);
  const seconds = resource.strategy.graceSeconds?.(object, grace) ?? 0;
  const held = withPolicy(object, policy);
  if (seconds === 0 && (held.metadata.finalizers ?? []).length === 0) {
    if (policy === 'Orphan') orphanDependents(api, object);
    const last = removeNow(api, resource, object);
    return resource.returnsDeleted ? { status: 200, body: last } : success(resource, object);
  }
  const { deletionTimestamp, deletionGracePeriodSeconds: before } = object.metadata;
  // A second deletion may only shorten the time that is left.
  if (deletionTimestamp !== undefined && seconds >= (before ?? 0)) return { status: 200, body: object };
  const at = `${new Date(api.nowMs() + seconds * 1000).toISOString().slice(0, 19)}Z`;
  const isMarked = deletionTimestamp !== undefined;
  const marked = withMetadata(held, {
    deletionTimestamp: at,
    deletionGracePeriodSeconds: seconds,
    ...(resource.generation === 'none' || isMarked ? {} : { generation: (object.metadata.generation ?? 0) + 1 }),
  });
  const stored = api.store.put(storageKey(resource), marked);
  if (policy === 'Foreground') collectForeground(api, stored);
  return { status: 200, body: stored };
}

/** Waiting for dependents is what a finalizer is for; the garbage collector takes it off when they are gone. */
function withPolicy(object: KubeObject, policy: string): KubeObject {
  if (policy !== 'Foreground' || (object.metadata.finalizers ?? []).includes(FOREGROUND)) return object;
  return withMetadata(object, { finalizers: [...(object.metadata.finalizers ?? []), FOREGROUND] });
}

function orphanDependents(api: Api, owner: KubeObject): void {
  for (const kind of api.registry.all()) {
    for (const object of api.store.list(storageKey(kind))) {
      const owners = object.metadata.ownerReferences ?? [];
      const others = owners.filter((one) => one.uid !== owner.metadata.uid);
      if (others.length === owners.length) continue;
      api.store.put(
        storageKey(kind),
        withMetadata(object, { ownerReferences: others.length > 0 ? others : undefined }),
      );
    }
  }
}

function terminateNamespace(api: Api, resource: ApiResource, namespace: KubeObject): ApiAnswer {
  const { name, deletionTimestamp } = namespace.metadata;
  if (deletionTimestamp !== undefined) return { status: 200, body: namespace };
  const at = `${new Date(api.nowMs()).toISOString().slice(0, 19)}Z`;
  const marked = withMetadata({ ...namespace, status: { phase: 'Terminating' } }, { deletionTimestamp: at });
  const stored = api.store.put(storageKey(resource), marked);
  if (api.collectsGarbage) emptyNamespace(api, resource, name);
  return { status: 200, body: stored };
}

function success(resource: ApiResource, { metadata }: KubeObject): ApiAnswer {
  const group = resource.group === '' ? {} : { group: resource.group };
  const details = { name: metadata.name, ...group, kind: resource.plural, uid: metadata.uid };
  return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } };
}

/** Answers a DELETE of a collection, selectors honoured: with the list of what it was. */
export function removeAll(api: Api, request: ApiRequest): ApiAnswer {
  const { resource } = request;
  const objects = listObjects(api, request);
  for (const object of objects) deleteQuietly(api, resource, object);
  const metadata = { resourceVersion: String(api.store.revision) };
  return {
    status: 200,
    body: { kind: `${resource.kind}List`, apiVersion: groupVersion(resource), metadata, items: objects },
  };
}
