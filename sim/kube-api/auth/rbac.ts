import type { Api } from '../api.ts';
import { ApiError } from '../api-error.ts';
import { isObject, type JsonObject, type KubeObject } from '../object.ts';
import type { User } from './tokens.ts';

/** What somebody wants to do, as RBAC sees it. */
export type AccessRequest = {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string | undefined;
  readonly name: string;
};

const GROUP = 'rbac.authorization.k8s.io';

/** Reports whether the roles in the store, bound to the user or its groups, allow a request. */
export function isAllowed(api: Api, user: User, request: AccessRequest): boolean {
  if (user.groups.includes('system:masters')) return true;
  const everywhere = rulesBound(api, user, api.store.list(`${GROUP}/clusterrolebindings`));
  const here =
    request.namespace === undefined
      ? []
      : rulesBound(api, user, api.store.list(`${GROUP}/rolebindings`, request.namespace));
  return [...everywhere, ...here].some((rule) => allows(rule, request));
}

function rulesBound(api: Api, user: User, bindings: readonly KubeObject[]): readonly JsonObject[] {
  return bindings
    .filter((binding) =>
      listOf(binding['subjects']).some((subject) => isSubject(subject, user, binding.metadata.namespace)),
    )
    .flatMap((binding) => {
      const ref = isObject(binding['roleRef']) ? binding['roleRef'] : {};
      const isCluster = ref['kind'] === 'ClusterRole';
      const key = `${isCluster ? '' : (binding.metadata.namespace ?? '')}/${String(ref['name'])}`;
      return listOf(api.store.get(`${GROUP}/${isCluster ? 'clusterroles' : 'roles'}`, key)?.['rules']);
    });
}

function isSubject(subject: JsonObject, user: User, namespace: string | undefined): boolean {
  const { kind, name } = subject;
  if (kind === 'User') return user.username === name;
  if (kind === 'Group') return user.groups.includes(String(name));
  return user.username === `system:serviceaccount:${String(subject['namespace'] ?? namespace)}:${String(name)}`;
}

function allows(rule: JsonObject, request: AccessRequest): boolean {
  const resource = request.subresource === '' ? request.resource : `${request.resource}/${request.subresource}`;
  const names = textsOf(rule['resourceNames']);
  return (
    hasOne(rule['verbs'], request.verb) &&
    hasOne(rule['apiGroups'], request.group) &&
    (hasOne(rule['resources'], resource) ||
      (request.subresource !== '' && textsOf(rule['resources']).includes(`*/${request.subresource}`))) &&
    (names.length === 0 || names.includes(request.name))
  );
}

function hasOne(values: unknown, wanted: string): boolean {
  return textsOf(values).some((value) => value === '*' || value === wanted);
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Makes the error for what RBAC does not allow, in the words of the real server. */
export function forbidden(user: User, request: AccessRequest): ApiError {
  const resource = request.subresource === '' ? request.resource : `${request.resource}/${request.subresource}`;
  const about = request.group === '' ? request.resource : `${request.resource}.${request.group}`;
  const named = request.name === '' ? '' : ` "${request.name}"`;
  const where = request.namespace === undefined ? 'at the cluster scope' : `in the namespace "${request.namespace}"`;
  const message = `${about}${named} is forbidden: User "${user.username}" cannot ${request.verb} resource "${resource}" in API group "${request.group}" ${where}`;
  return new ApiError(403, 'Forbidden', message, {
    ...(request.name === '' ? {} : { name: request.name }),
    ...(request.group === '' ? {} : { group: request.group }),
    kind: request.resource,
  });
}
