import type { Api, ApiRequest } from '../api.ts';
import { refusedByPolicy } from '../api-error.ts';
import { evaluate } from '../cel/evaluate.ts';
import { CelError } from '../cel/lex.ts';
import { expressionOf } from '../cel/parse.ts';
import type { JsonObject, KubeObject } from '../object.ts';
import { storageKey } from '../resources/api-resource.ts';
import { isDryRun } from '../verbs/is-dry-run.ts';
import { MUTATING_CONFIGURATIONS, objectsIn, partOf } from './webhook.ts';

/** A write that is about to happen. */
type Write =
  | { readonly operation: 'CREATE'; readonly object: KubeObject; readonly old?: undefined }
  | { readonly operation: 'UPDATE'; readonly object: KubeObject; readonly old: KubeObject }
  | { readonly operation: 'DELETE'; readonly object?: undefined; readonly old: KubeObject };

const { group: GROUP } = MUTATING_CONFIGURATIONS;
const POLICIES = storageKey({ group: GROUP, plural: 'validatingadmissionpolicies' });
const BINDINGS = storageKey({ group: GROUP, plural: 'validatingadmissionpolicybindings' });

/**
 * Refuses a write that a ValidatingAdmissionPolicy refuses whose binding denies.
 * @throws ApiError with the reason of the validation, or Invalid
 * @see https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
 */
export function enforcePolicies(api: Api, request: ApiRequest, write: Write): void {
  // A policy that refuses everything must not keep out its own correction.
  if (request.resource.group === GROUP) return;
  for (const binding of api.store.list(BINDINGS)) {
    const { policyName, validationActions } = partOf(binding, 'spec') as Readonly<Record<string, unknown>>;
    const policy = api.store.get(POLICIES, `/${String(policyName)}`);
    if (policy === undefined || !Array.isArray(validationActions) || !validationActions.includes('Deny')) continue;
    const refusal = refusalOf(partOf(policy, 'spec'), request, write);
    if (refusal === undefined) continue;
    const names = `ValidatingAdmissionPolicy '${policy.metadata.name}' with binding '${binding.metadata.name}'`;
    const name = (write.object ?? write.old).metadata.name;
    throw refusedByPolicy(request.resource, name, `${names} denied request: ${refusal.message}`, refusal.reason);
  }
}

type Refusal = { readonly message: string; readonly reason: string };

function refusalOf(spec: JsonObject, request: ApiRequest, write: Write): Refusal | undefined {
  const rules = objectsIn(partOf(spec, 'matchConstraints')['resourceRules']);
  if (!rules.some((rule) => isFor(rule, request, write.operation))) return undefined;
  const isIgnored = spec['failurePolicy'] === 'Ignore';
  const scope = scopeOf(spec, request, write);
  try {
    for (const one of objectsIn(spec['matchConditions'])) if (run(one['expression'], scope) !== true) return undefined;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return isIgnored ? undefined : { message: error.message, reason: 'Invalid' };
  }
  for (const validation of objectsIn(spec['validations'])) {
    const { expression, reason } = validation as Readonly<Record<string, unknown>>;
    try {
      if (run(expression, scope) === true) continue;
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      if (isIgnored) continue;
      return { message: `expression '${String(expression)}' resulted in error: ${error.message}`, reason: 'Invalid' };
    }
    return { message: messageOf(validation, scope), reason: String(reason ?? 'Invalid') };
  }
  return undefined;
}

function isFor(rule: JsonObject, { resource, subresource }: ApiRequest, operation: string): boolean {
  const { group, version, plural } = resource;
  const names = subresource === '' ? [plural, '*', '*/*'] : [`${plural}/${subresource}`, `${plural}/*`, '*/*'];
  const has = (field: string, ...wanted: readonly string[]): boolean => {
    const list = rule[field];
    return Array.isArray(list) && wanted.some((one) => list.includes(one));
  };
  return (
    has('apiGroups', group, '*') &&
    has('apiVersions', version, '*') &&
    has('resources', ...names) &&
    has('operations', operation, '*')
  );
}

type Scope = Readonly<Record<string, unknown>>;

/** The names that an expression of a policy may use. A variable is evaluated where one asks for it. */
function scopeOf(spec: JsonObject, request: ApiRequest, { operation, object, old }: Write): Scope {
  const { resource, subresource, namespace, user } = request;
  const { group, version, kind, plural } = resource;
  const variables: Record<string, unknown> = {};
  const scope: Scope = {
    object: object ?? null,
    oldObject: old ?? null,
    request: {
      kind: { group, version, kind },
      resource: { group, version, resource: plural },
      name: (object ?? old)?.metadata.name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(subresource === '' ? {} : { subResource: subresource }),
      operation,
      userInfo: user,
      dryRun: isDryRun(request),
    },
    variables,
  };
  for (const { name, expression } of objectsIn(spec['variables']) as readonly Readonly<Record<string, unknown>>[]) {
    Object.defineProperty(variables, String(name), { enumerable: true, get: () => run(expression, scope) });
  }
  return scope;
}

/** Where the expression of the message fails, the text that stands beside it counts. */
function messageOf(validation: JsonObject, scope: Scope): string {
  const { messageExpression, message, expression } = validation as Readonly<Record<string, unknown>>;
  const plain = typeof message === 'string' ? message : `failed expression: ${String(expression).trim()}`;
  if (messageExpression === undefined) return plain;
  try {
    const text = run(messageExpression, scope);
    return typeof text === 'string' && text.trim() !== '' && !text.includes('\n') ? text : plain;
  } catch (error) {
    if (error instanceof CelError) return plain;
    throw error;
  }
}

function run(source: unknown, scope: Scope): unknown {
  return evaluate(expressionOf(String(source)), scope);
}
