import { ApiError } from '../api-error.ts';
import { CelError } from '../cel/lex.ts';
import { parseCel } from '../cel/parse.ts';
import type { JsonObject, KubeObject } from '../object.ts';
import type { Strategy } from '../resources/api-resource.ts';
import { type Cause, invalidValue, requiredValue } from '../resources/causes.ts';
import { objectsIn, partOf } from './webhook.ts';

/** What the API server does with ValidatingAdmissionPolicies: defaults, and each expression must be one. */
export const POLICY_STRATEGY: Strategy = {
  prepareCreate: withDefaults,
  prepareUpdate: withDefaults,
  validate: (policy) => {
    const spec = partOf(policy, 'spec');
    requireSimulated(spec);
    const lists = { matchConditions: 'expression', variables: 'expression', validations: 'expression' } as const;
    return Object.entries(lists).flatMap(([list, field]) =>
      objectsIn(spec[list]).flatMap((one, index) => expressionFaults(one[field], `spec.${list}[${index}].${field}`)),
    );
  },
};

/** What it does with their bindings. */
export const POLICY_BINDING_STRATEGY: Strategy = {
  validate: (binding) => {
    const spec = partOf(binding, 'spec');
    if (spec['paramRef'] !== undefined) throw notSimulated('parameters of admission policies');
    if (spec['matchResources'] !== undefined) throw notSimulated('matchResources of bindings');
    return [
      ...(typeof spec['policyName'] === 'string' ? [] : [requiredValue('spec.policyName')]),
      ...(Array.isArray(spec['validationActions']) ? [] : [requiredValue('spec.validationActions')]),
    ];
  },
};

function withDefaults(policy: KubeObject): KubeObject {
  const spec = partOf(policy, 'spec');
  const constraints = partOf(spec, 'matchConstraints');
  const rules = objectsIn(constraints['resourceRules']).map((rule) => ({ scope: '*', ...rule }));
  const matchConstraints = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {}, ...constraints };
  return {
    ...policy,
    spec: { failurePolicy: 'Fail', ...spec, matchConstraints: { ...matchConstraints, resourceRules: rules } },
  };
}

function expressionFaults(expression: unknown, at: string): readonly Cause[] {
  if (typeof expression !== 'string' || expression.trim() === '') return [requiredValue(at)];
  try {
    parseCel(expression);
    return [];
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return [invalidValue(at, expression, `compilation failed: ${error.message}`)];
  }
}

/** Refuses what the real server does and this one does not. */
function requireSimulated(spec: JsonObject): void {
  const constraints = partOf(spec, 'matchConstraints');
  const isEmpty = (field: string): boolean => Object.keys(partOf(constraints, field)).length === 0;
  if (!isEmpty('namespaceSelector') || !isEmpty('objectSelector'))
    throw notSimulated('selectors of admission policies');
  if (constraints['excludeResourceRules'] !== undefined) throw notSimulated('excludeResourceRules');
  if (spec['paramKind'] !== undefined) throw notSimulated('parameters of admission policies');
}

function notSimulated(what: string): ApiError {
  return new ApiError(501, '', `this test API server has no ${what}`);
}
