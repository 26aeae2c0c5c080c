import { ruleFaults } from '../cel/rules.ts';
import type { KubeObject } from '../object.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { prune, withDefaults } from '../schema/shape.ts';
import { validate } from '../schema/validate.ts';
import type { Cause } from './causes.ts';

/** A custom resource as its schema lets it be. */
type Shaped = { readonly object: KubeObject; readonly unknown: readonly string[] };

/** Prunes a custom resource and fills in its defaults. */
export function shape(object: KubeObject, schema: JsonSchema): Shaped {
  const { value, unknown } = prune(object, schema);
  // An object stays one, and its head is always in the schema.
  return { object: withDefaults(value, schema) as KubeObject, unknown };
}

/** Lists what is wrong with a custom resource. CEL rules are asked only when the form is right, as the real server does. */
export function customFaults(object: KubeObject, old: KubeObject | undefined, schema: JsonSchema): readonly Cause[] {
  const faults = validate(object, schema, '');
  if (faults.length === 0) return ruleFaults(object, old, schema, '');
  // Duplicates alone do not stand in the way of the rules.
  const isMalformed = faults.some((fault) => fault.reason !== 'FieldValueDuplicate');
  return isMalformed && hasRules(schema) ? [...faults, NOT_CHECKED] : faults;
}

const NOT_CHECKED: Cause = {
  field: '<nil>',
  reason: 'FieldValueInvalid',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};

function hasRules(schema: JsonSchema): boolean {
  const more = typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : [];
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...more,
    ...(schema.items === undefined ? [] : [schema.items]),
  ];
  return schema['x-kubernetes-validations'] !== undefined || inner.some(hasRules);
}
