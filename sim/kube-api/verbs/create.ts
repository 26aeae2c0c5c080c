import { enforcePolicies } from '../admission/enforce-policies.ts';
import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { ApiError, alreadyExists, badRequest, invalid, notFound } from '../api-error.ts';
import { isObject, type KubeObject, withMetadata } from '../object.ts';
import { type ApiResource, groupVersion, storageKey } from '../resources/api-resource.ts';
import { type Cause, forbiddenValue, invalidValue, requiredValue } from '../resources/causes.ts';
import { shape } from '../resources/custom-resource.ts';
import { DEFINITIONS } from '../resources/registry.ts';
import { allocated, type Committed, contentFaults, timestamp } from './commit.ts';
import { establish } from './establish.ts';
import { collectIfOrphaned } from './garbage.ts';
import { isDryRun } from './is-dry-run.ts';
import { warnOfUnknown } from './warnings.ts';

/** Answers a POST to a collection. @throws ApiError */
export function create(api: Api, request: ApiRequest): ApiAnswer {
  const { object, warnings } = commitCreate(api, request, readObject(request));
  return { status: 201, body: object, warnings };
}

/** Stores a new object. @throws ApiError AlreadyExists, Invalid, NotFound of its namespace */
export function commitCreate(api: Api, request: ApiRequest, given: KubeObject): Committed {
  const { resource, namespace } = request;
  checkNamespace(api, resource, namespace);
  checkDefinition(api, resource);
  const named = withIdentity(api, request, given);
  const name = named.metadata.name;
  const isStatusApart = resource.subresources.includes('status') && resource.schema !== undefined;
  const { status, ...statusless } = named;
  const bare = isStatusApart ? statusless : { ...statusless, ...(status === undefined ? {} : { status }) };
  const prepared = resource.strategy.prepareCreate?.(bare) ?? bare;
  const { object: full, faults: shortages } = allocated(api, resource, prepared);
  const shaped = resource.schema === undefined ? { object: full, unknown: [] } : shape(full, resource.schema);
  const warnings = warnOfUnknown(request, shaped.unknown);
  const faults = [
    ...nameFaults(resource, named),
    ...contentFaults(resource, shaped.object, undefined, ''),
    ...shortages,
  ];
  if (faults.length > 0) throw invalid(resource, name, faults);
  enforcePolicies(api, request, { operation: 'CREATE', object: shaped.object });
  if (api.store.get(storageKey(resource), `${namespace ?? ''}/${name}`) !== undefined)
    throw alreadyExists(resource, name);
  if (isDryRun(request)) return { object: shaped.object, warnings };
  const stored = api.store.put(storageKey(resource), shaped.object);
  collectIfOrphaned(api, resource, stored);
  return { object: storageKey(resource) === DEFINITIONS ? establish(api, stored) : stored, warnings };
}

/** Reads the object in a body and checks that it is of the resource that was asked for. @throws ApiError BadRequest */
export function readObject(request: ApiRequest): KubeObject {
  const { body, resource } = request;
  if (!isObject(body)) throw badRequest('the body is no object');
  const apiVersion = body['apiVersion'] ?? (resource.schema === undefined ? groupVersion(resource) : undefined);
  const kind = body['kind'] ?? (resource.schema === undefined ? resource.kind : undefined);
  if (kind === undefined) throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
  if (apiVersion === undefined) throw badRequest(`Object 'apiVersion' is missing in '${JSON.stringify(body)}'`);
  if (apiVersion !== groupVersion(resource)) {
    throw badRequest(
      `the API version in the data (${String(apiVersion)}) does not match the expected API version (${groupVersion(resource)})`,
    );
  }
  if (kind !== resource.kind) {
    throw badRequest(
      `${String(kind)} in version ${JSON.stringify(resource.version)} cannot be handled as a ${resource.kind}`,
    );
  }
  const metadata = body['metadata'] ?? {};
  if (!isObject(metadata)) throw badRequest('metadata is no object');
  // Names and namespaces are checked by who uses them.
  return { ...body, apiVersion, kind, metadata: metadata as KubeObject['metadata'] } as KubeObject;
}

function checkDefinition(api: Api, { schema, plural, group }: ApiResource): void {
  if (schema === undefined) return;
  const definition = api.store.get(DEFINITIONS, `/${plural}.${group}`);
  if (definition?.metadata.deletionTimestamp === undefined) return;
  const message = `create not allowed while custom resource definition is terminating is not supported on resources of kind "${plural}.${group}"`;
  throw new ApiError(405, 'MethodNotAllowed', message, { group, kind: plural });
}

function checkNamespace(api: Api, resource: ApiResource, namespace: string | undefined): void {
  if (!resource.namespaced || namespace === undefined) return;
  const found = api.store.get('/namespaces', `/${namespace}`);
  if (found === undefined) throw notFound({ group: '', plural: 'namespaces', kind: 'Namespace' }, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const message = `${resource.plural} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
  throw new ApiError(403, 'Forbidden', message, {
    kind: resource.plural,
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  });
}

const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

function withIdentity(api: Api, request: ApiRequest, given: KubeObject): KubeObject {
  const { resource, namespace } = request;
  const { metadata } = given;
  if (
    resource.namespaced &&
    metadata.namespace !== undefined &&
    metadata.namespace !== '' &&
    metadata.namespace !== namespace
  ) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') {
    throw new ApiError(500, '', 'resourceVersion should not be set on objects to be created');
  }
  const suffix = Array.from({ length: 5 }, () => SUFFIX_LETTERS[Math.floor(api.random() * SUFFIX_LETTERS.length)]).join(
    '',
  );
  const generated = metadata.generateName ? `${metadata.generateName}${suffix}` : '';
  return withMetadata(given, {
    name: metadata.name || generated,
    namespace: resource.namespaced ? namespace : undefined,
    uid: api.newUid(),
    creationTimestamp: timestamp(api.nowMs()),
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    resourceVersion: undefined,
    generation: resource.generation === 'none' ? undefined : 1,
    managedFields: request.contentType.startsWith('application/apply-patch') ? metadata.managedFields : undefined,
  });
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

function nameFaults(resource: ApiResource, { metadata }: KubeObject): readonly Cause[] {
  if (metadata.name === '') return [requiredValue('metadata.name', 'name or generateName is required')];
  // Names in RBAC are free: system:node and the like.
  const isFree = resource.group === 'rbac.authorization.k8s.io';
  const isGood = isFree ? !/[/%]/.test(metadata.name) : SUBDOMAIN.test(metadata.name) && metadata.name.length <= 253;
  return [
    ...(isGood ? [] : [invalidValue('metadata.name', metadata.name, SUBDOMAIN_RULE)]),
    ...(resource.namespaced && metadata.namespace === undefined ? [requiredValue('metadata.namespace')] : []),
    ...(metadata.ownerReferences ?? []).flatMap((owner, index) =>
      owner.uid ? [] : [invalidValue(`metadata.ownerReferences[${index}].uid`, '', 'must not be empty')],
    ),
    ...((metadata.finalizers ?? []).some((one) => one === '')
      ? [forbiddenValue('metadata.finalizers', 'must not be empty')]
      : []),
  ];
}
