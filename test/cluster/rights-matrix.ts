import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import type { Rule } from '../conf/published-rights.ts';
import type { Answer, ContractClient } from '../kube-api/contract/client.ts';

/** One thing that a user may be allowed to do. */
type Wish = {
  readonly verb: Verb;
  readonly group: string;
  /** With its subresource: `pods/exec`. */
  readonly resource: string;
  readonly method: string;
  readonly path: string;
};

/** Verbs that a request can have. */
type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

type Resource = {
  readonly group: string;
  readonly version: string;
  readonly name: string;
  readonly isNamespaced: boolean;
};

/** What every user of a cluster may ask for: about itself. @see ClusterRole system:basic-user */
export const OF_EVERYBODY: readonly Rule[] = [
  {
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    verbs: ['create'],
  },
  { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
];

/** No object has it. */
const NOBODY = 'nobody-has-this-name';
/** A subresource is always of one object: the server knows no list of them. */
const OF_OBJECT: readonly Verb[] = ['get', 'create', 'update', 'patch', 'delete'];
const OF_COLLECTION: readonly Verb[] = ['list', 'watch', 'deletecollection'];
const METHODS = {
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
} as const;

/** Lists everything that can be asked of the server: each verb with each resource that it has, in both namespaces. */
export async function listWishes(api: ContractClient, namespaces: readonly string[]): Promise<readonly Wish[]> {
  const resources = await discover(api);
  return resources.flatMap((resource) =>
    (resource.isNamespaced ? namespaces : ['']).flatMap((namespace) => wishesOf(resource, namespace)),
  );
}

/** Asks for one of them; what would change something is a dry run. */
export function ask(api: ContractClient, token: string, { method, path }: Wish): Promise<Answer> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return api.call(method, path, method === 'GET' ? undefined : {}, { token, contentType });
}

/** True when the answer says that the user has no right to do it, whatever else may be wrong with it. */
export function isDenied({ status, body }: Answer): boolean {
  return status === 403 && / cannot \w+ resource /.test(String(body['message']));
}

/** True when one of the rules grants it. */
export function isGranted(rules: readonly Rule[], { verb, group, resource }: Wish): boolean {
  return rules.some(
    (rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb),
  );
}

/** Writes rules as one line for each right, sorted: however they are grouped, equal rights look equal. */
export function listRights(rules: readonly Rule[]): readonly string[] {
  const lines = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group === '' ? '' : `${group}/`}${resource}`)),
    ),
  );
  return [...new Set(lines)].sort();
}

async function discover(api: ContractClient): Promise<readonly Resource[]> {
  const groups = objects((await api.call('GET', '/apis')).body['groups']).map((group) => {
    const preferred = isObject(group['preferredVersion']) ? group['preferredVersion'] : {};
    return { group: String(group['name']), version: String(preferred['version']) };
  });
  const found: Resource[] = [];
  for (const { group, version } of [{ group: '', version: 'v1' }, ...groups]) {
    const { body } = await api.call('GET', rootOf(group, version));
    for (const one of objects(body['resources']))
      found.push({ group, version, name: String(one['name']), isNamespaced: one['namespaced'] === true });
  }
  return found;
}

function wishesOf(resource: Resource, namespace: string): readonly Wish[] {
  const { group, version, name } = resource;
  const [plural = '', subresource] = name.split('/');
  const collection = `${rootOf(group, version)}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`;
  const object = `${collection}/${NOBODY}${subresource === undefined ? '' : `/${subresource}`}`;
  const isOnCollection = (verb: Verb) =>
    OF_COLLECTION.includes(verb) || (verb === 'create' && subresource === undefined);
  const verbs = subresource === undefined ? [...OF_OBJECT, ...OF_COLLECTION] : OF_OBJECT;
  return verbs.map((verb) => ({
    verb,
    group,
    resource: name,
    method: verb in METHODS ? METHODS[verb as keyof typeof METHODS] : 'GET',
    path: `${isOnCollection(verb) ? collection : object}${QUERIES[verb]}`,
  }));
}

const DRY_RUN = '?dryRun=All';
const QUERIES: Readonly<Record<Verb, string>> = {
  get: '',
  list: '?limit=1',
  watch: '?watch=1&timeoutSeconds=1',
  create: DRY_RUN,
  update: DRY_RUN,
  patch: DRY_RUN,
  delete: DRY_RUN,
  deletecollection: DRY_RUN,
};

function rootOf(group: string, version: string): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

function objects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
