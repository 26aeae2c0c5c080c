import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { badRequest, invalid, notFound } from '../api-error.ts';
import { isObject, type KubeObject, withMetadata } from '../object.ts';
import { storageKey } from '../resources/api-resource.ts';
import { commitUpdate, missingResourceVersion } from './commit.ts';
import { commitCreate, readObject } from './create.ts';

/** Answers a PUT. @throws ApiError */
export function update(api: Api, request: ApiRequest): ApiAnswer {
  const { resource, name } = request;
  const given = readObject(request);
  const named = given.metadata.name ?? '';
  if (named === '')
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  if (named !== name) {
    throw badRequest(`the name of the object (${named}) does not match the name on the URL (${name})`);
  }
  const wanted = withMetadata(given, { name, namespace: checkedNamespace(request, given) });
  const old = find(api, request);
  if (old === undefined) {
    if (!resource.createsOnUpdate || request.subresource !== '') throw notFound(resource, name);
    const { object, warnings } = commitCreate(api, request, withMetadata(wanted, { resourceVersion: undefined }));
    return { status: 201, body: object, warnings };
  }
  const hasVersion = wanted.metadata.resourceVersion !== undefined && wanted.metadata.resourceVersion !== '';
  if (resource.needsResourceVersion && !hasVersion)
    throw invalid({ ...resource, kind: resource.plural }, name, [missingResourceVersion()]);
  const { object, warnings } = commitUpdate(api, request, old, wanted);
  return { status: 200, body: object, warnings };
}

function checkedNamespace(request: ApiRequest, { metadata }: KubeObject): string | undefined {
  if (!request.resource.namespaced) return undefined;
  if (metadata.namespace !== undefined && metadata.namespace !== '' && metadata.namespace !== request.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return request.namespace;
}

/** Returns the object that a request names, if it is there. */
export function find(api: Api, { resource, namespace, name }: ApiRequest): KubeObject | undefined {
  return api.store.get(storageKey(resource), `${resource.namespaced ? (namespace ?? '') : ''}/${name}`);
}

/** Returns the object that a request names. @throws ApiError NotFound */
export function findOrThrow(api: Api, request: ApiRequest): KubeObject {
  const found = find(api, request);
  if (found === undefined) throw notFound(request.resource, request.name);
  return found;
}

/** Answers a PUT to `namespaces/x/finalize`: the namespace goes once nothing holds it. */
export function finalize(api: Api, request: ApiRequest): ApiAnswer {
  const old = findOrThrow(api, request);
  const given = readObject(request);
  const spec = isObject(given['spec']) ? given['spec'] : {};
  const isDone = !Array.isArray(spec['finalizers']) || spec['finalizers'].length === 0;
  if (isDone && old.metadata.deletionTimestamp !== undefined) {
    return { status: 200, body: api.store.remove(storageKey(request.resource), old) };
  }
  return { status: 200, body: api.store.put(storageKey(request.resource), { ...old, spec }) };
}
