import type { Api, ApiRequest } from '../api.ts';
import type { JsonObject, KubeObject } from '../object.ts';
import { MUTATING_CONFIGURATIONS, type MutatingWebhook, objectsIn } from './webhook.ts';

/**
 * Reports whether a webhook is asked about an object that is created, as those before it have made it.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules
 */
export function isAsked(
  hook: MutatingWebhook,
  { store }: Pick<Api, 'store'>,
  { resource, namespace }: Pick<ApiRequest, 'resource' | 'namespace'>,
  object: KubeObject,
): boolean {
  // A configuration that fails must not keep out its own correction.
  if (resource.group === MUTATING_CONFIGURATIONS.group) return false;
  if (!hook.rules.some((rule) => isFor(rule, resource))) return false;
  const labels = object.metadata.labels ?? {};
  if (!selects(hook.objectSelector, labels)) return false;
  if (resource.group === '' && resource.plural === 'namespaces') return selects(hook.namespaceSelector, labels);
  // What is in no namespace is selected by every selector of namespaces.
  if (namespace === undefined) return true;
  return selects(hook.namespaceSelector, store.get('/namespaces', `/${namespace}`)?.metadata.labels ?? {});
}

function isFor(rule: JsonObject, { group, version, plural, namespaced }: ApiRequest['resource']): boolean {
  const { scope } = rule as { readonly scope?: unknown };
  return (
    includes(rule['apiGroups'], group) &&
    includes(rule['apiVersions'], version) &&
    includes(rule['resources'], plural) &&
    includes(rule['operations'], 'CREATE') &&
    (scope === '*' || scope === (namespaced ? 'Namespaced' : 'Cluster'))
  );
}

function includes(list: unknown, value: string): boolean {
  return Array.isArray(list) && (list.includes('*') || list.includes('*/*') || list.includes(value));
}

type Labels = Readonly<Record<string, string>>;

/** Reports whether a label selector of an object, as `metav1.LabelSelector` has it, selects labels; an empty one selects all. */
function selects(selector: JsonObject, labels: Labels): boolean {
  const { matchLabels = {} } = selector as { readonly matchLabels?: Labels };
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    objectsIn(selector['matchExpressions']).every((expression) => holds(expression, labels))
  );
}

function holds(expression: JsonObject, labels: Labels): boolean {
  const value = labels[String(expression['key'])];
  const values = Array.isArray(expression['values']) ? expression['values'] : [];
  switch (expression['operator']) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}
