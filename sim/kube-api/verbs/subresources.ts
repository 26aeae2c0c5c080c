import type { Api, ApiAnswer, ApiRequest } from '../api.ts';
import { ApiError, conflict, notFound } from '../api-error.ts';
import { isAllowed } from '../auth/rbac.ts';
import { serviceAccountUser } from '../auth/tokens.ts';
import { isObject, type JsonObject } from '../object.ts';
import { storageKey } from '../resources/api-resource.ts';
import { timestamp } from './commit.ts';
import { remove } from './delete.ts';
import { findOrThrow } from './update.ts';

function specOf(body: unknown): JsonObject {
  const spec = isObject(body) ? body['spec'] : undefined;
  return isObject(spec) ? spec : {};
}

const CREATED = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Answers a POST to `pods/x/binding`: the scheduler's word that the Pod goes to a node. @throws ApiError Conflict */
export function bindPod(api: Api, request: ApiRequest): ApiAnswer {
  const pod = findOrThrow(api, request);
  const target = isObject(request.body) && isObject(request.body['target']) ? request.body['target'] : {};
  const node = target['name'];
  if (typeof node !== 'string' || node === '') {
    throw new ApiError(500, '', 'target.name: Required value');
  }
  const spec = isObject(pod['spec']) ? pod['spec'] : {};
  const about = { group: '', plural: 'pods/binding', kind: 'Pod' };
  const wanted = isObject(request.body) && isObject(request.body['metadata']) ? request.body['metadata']['uid'] : '';
  if (typeof wanted === 'string' && wanted !== '' && wanted !== pod.metadata.uid) {
    const uids = `UID in precondition: ${wanted}, UID in object meta: ${pod.metadata.uid}`;
    throw conflict(about, request.name, `Precondition failed: ${uids}`);
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(about, request.name, `pod ${request.name} is being deleted, cannot be assigned to a host`);
  }
  if (spec['nodeName'])
    throw conflict(
      about,
      request.name,
      `pod ${request.name} is already assigned to node ${JSON.stringify(spec['nodeName'])}`,
    );
  const status = isObject(pod['status']) ? pod['status'] : {};
  const others = Array.isArray(status['conditions'])
    ? status['conditions'].filter((one) => isObject(one) && one['type'] !== 'PodScheduled')
    : [];
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timestamp(api.nowMs()),
  };
  const bound = {
    ...pod,
    spec: { ...spec, nodeName: node },
    status: { ...status, conditions: [...others, scheduled] },
  };
  api.store.put(storageKey(request.resource), bound);
  return { status: 201, body: CREATED };
}

/** Answers a POST to `pods/x/eviction`: a deletion; disruption budgets are not looked at. @throws ApiError NotFound */
export function evictPod(api: Api, request: ApiRequest): ApiAnswer {
  const options = isObject(request.body) ? request.body['deleteOptions'] : undefined;
  remove(api, { ...request, subresource: '', body: options });
  return { status: 201, body: CREATED };
}

/** Answers a POST to `serviceaccounts/x/token` with a token that this server accepts from now on. */
export function requestToken(api: Api, request: ApiRequest): ApiAnswer {
  const account = findOrThrow(api, request);
  const seconds = Number(specOf(request.body)['expirationSeconds'] ?? 3600);
  const token = `token-${api.newUid()}`;
  api.tokens.add(token, serviceAccountUser(account.metadata.namespace ?? '', account.metadata.name));
  const expirationTimestamp = timestamp(api.nowMs() + seconds * 1000);
  const head = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: request.name, namespace: request.namespace },
  };
  return {
    status: 201,
    body: {
      ...head,
      spec: { ...specOf(request.body), expirationSeconds: seconds },
      status: { token, expirationTimestamp },
    },
  };
}

/** Answers GET and PUT of `deployments/x/scale`. @throws ApiError */
export function scale(api: Api, request: ApiRequest, verb: string): ApiAnswer {
  const object = findOrThrow(api, request);
  const spec = isObject(object['spec']) ? object['spec'] : {};
  if (verb === 'get') return { status: 200, body: scaleOf(request, object.metadata, spec) };
  if (verb !== 'update' && verb !== 'patch')
    throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
  const replicas = Number(specOf(request.body)['replicas'] ?? 0);
  const generation = (object.metadata.generation ?? 0) + (spec['replicas'] === replicas ? 0 : 1);
  const next = { ...object, metadata: { ...object.metadata, generation }, spec: { ...spec, replicas } };
  const stored = api.store.put(storageKey(request.resource), next);
  return { status: 200, body: scaleOf(request, stored.metadata, next.spec) };
}

function scaleOf(request: ApiRequest, metadata: JsonObject, spec: JsonObject) {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata as Record<string, unknown>;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name: name ?? request.name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: spec['replicas'] ?? 1 },
    status: { replicas: 0 },
  };
}

/** Answers the reviews: who somebody is, and what somebody may do. @throws ApiError NotFound for any other resource */
export function review(api: Api, request: ApiRequest): ApiAnswer {
  const { resource, user, body } = request;
  const spec = specOf(body);
  const answer = (status: JsonObject): ApiAnswer => {
    const given = isObject(body) ? body : {};
    return {
      status: 201,
      // A review has no name, whatever was sent.
      body: {
        ...given,
        kind: resource.kind,
        apiVersion: `${resource.group}/${resource.version}`,
        metadata: {},
        status,
      },
    };
  };
  const { username, groups } = user;
  switch (resource.kind) {
    case 'SelfSubjectReview':
      return answer({ userInfo: { username, groups } });
    case 'TokenReview': {
      const found = api.tokens.userOf(String(spec['token']));
      return answer(found === undefined ? { authenticated: false } : { authenticated: true, user: found });
    }
    case 'SelfSubjectAccessReview':
      return answer({ allowed: mayDo(api, username, groups, spec) });
    case 'SubjectAccessReview': {
      const theirs = Array.isArray(spec['groups']) ? spec['groups'].map(String) : [];
      return answer({ allowed: mayDo(api, String(spec['user']), theirs, spec) });
    }
    default:
      throw notFound(resource, resource.kind);
  }
}

function mayDo(api: Api, username: string, groups: readonly string[], spec: JsonObject): boolean {
  const asked = isObject(spec['resourceAttributes']) ? spec['resourceAttributes'] : undefined;
  if (asked === undefined) return true;
  const text = (key: string) => String(asked[key] ?? '');
  return isAllowed(
    api,
    { username, groups },
    {
      verb: text('verb'),
      group: text('group'),
      resource: text('resource'),
      subresource: text('subresource'),
      namespace: text('namespace') || undefined,
      name: text('name'),
    },
  );
}
