import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { ApiError, badRequest, invalidOptions, notFound, unsupportedMediaType } from '../api-error.ts';
import { applyConfiguration } from '../apply/server-side-apply.ts';
import { isObject, type KubeObject, withMetadata } from '../object.ts';
import { applyJsonPatch, PatchError } from '../patch/json-patch.ts';
import { applyMergePatch } from '../patch/merge-patch.ts';
import { applyStrategicMerge } from '../patch/strategic-merge.ts';
import { requiredValue } from '../resources/causes.ts';
import { commitUpdate, mergeKeysFor, writerOf } from './commit.ts';
import { commitCreate, readObject } from './create.ts';
import { find } from './update.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const APPLY = 'application/apply-patch+yaml';

/** Answers a PATCH: JSON patch, merge patch, strategic merge patch for built-in resources, server-side apply. @throws ApiError */
export function patch(api: Api, request: ApiRequest): ApiAnswer {
  const { resource, contentType } = request;
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(resource.schema === undefined ? [STRATEGIC] : []), APPLY];
  const kind = accepted.find((one) => contentType.startsWith(one));
  if (kind === undefined) throw unsupportedMediaType(accepted);
  const old = find(api, request);
  if (kind === APPLY) return apply(api, request, old);
  if (old === undefined) throw notFound(resource, request.name);
  const { object, warnings } = commitUpdate(api, request, old, patched(request, kind, old));
  return { status: 200, body: object, warnings };
}

function patched(request: ApiRequest, kind: string, old: KubeObject): KubeObject {
  const result = runPatch(request, kind, old);
  if (!isObject(result) || !isObject(result['metadata'])) throw badRequest('the patched object has no metadata');
  const { metadata } = result;
  if (metadata['name'] !== old.metadata.name) {
    throw badRequest(
      `the name of the object (${String(metadata['name'])}) does not match the name on the URL (${old.metadata.name})`,
    );
  }
  // A patch of an object: the rest is checked as any update is.
  return result as KubeObject;
}

function runPatch(request: ApiRequest, kind: string, old: KubeObject): unknown {
  try {
    if (kind === JSON_PATCH) return applyJsonPatch(old, request.body);
    if (!isObject(request.body)) throw badRequest('error decoding patch: the patch is no object');
    if (kind === MERGE_PATCH) return applyMergePatch(old, request.body);
    return applyStrategicMerge(old, request.body, mergeKeysFor(request.resource));
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    if (error.code === 'UNREADABLE') throw badRequest(`error decoding patch: ${error.message}`);
    throw new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
  }
}

function apply(api: Api, request: ApiRequest, old: KubeObject | undefined): ApiAnswer {
  const { resource, name, namespace, query } = request;
  const given = readObject(request);
  const manager = query.get('fieldManager');
  if (manager === null)
    throw invalidOptions('PatchOptions', requiredValue('fieldManager', 'is required for apply patch'));
  if (given.metadata.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');
  const uid = given.metadata.uid;
  if (old === undefined && uid !== undefined) {
    throw new ApiError(
      409,
      'Conflict',
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    );
  }
  const configuration = withMetadata(given, { name, namespace: resource.namespaced ? namespace : undefined });
  const options = {
    writer: writerOf(api, request, 'Apply'),
    force: query.get('force') === 'true',
    mergeKeys: mergeKeysFor(resource),
  };
  if (old === undefined) {
    const empty: KubeObject = { apiVersion: given.apiVersion, kind: given.kind, metadata: { name } };
    const { object, warnings } = commitCreate(api, request, applyConfiguration(empty, configuration, options));
    return { status: 201, body: object, warnings };
  }
  const wanted = withMetadata(applyConfiguration(old, configuration, options), {
    resourceVersion: given.metadata.resourceVersion,
  });
  const { object, warnings } = commitUpdate(api, request, old, wanted);
  return { status: 200, body: object, warnings };
}
