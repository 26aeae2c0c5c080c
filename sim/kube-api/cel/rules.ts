import { isEqual, isObject } from '../object.ts';
import type { Cause } from '../resources/causes.ts';
import type { JsonSchema, ValidationRule } from '../schema/json-schema.ts';
import { evaluate } from './evaluate.ts';
import { CelError } from './lex.ts';
import { expressionOf } from './parse.ts';

/**
 * Lists the rules of a schema that a value breaks. `old` is the value that it replaces: rules that speak of `oldSelf` hold
 * where there is none.
 */
export function ruleFaults(value: unknown, old: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (value === undefined || value === null) return [];
  return [
    ...(schema['x-kubernetes-validations'] ?? []).flatMap((rule) => faultsOf(rule, value, old, path)),
    ...innerFaults(value, old, schema, path),
  ];
}

function innerFaults(value: unknown, old: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return [];
    return value.flatMap((item: unknown, index) =>
      ruleFaults(item, counterpart(item, old, schema), items, `${path}[${index}]`),
    );
  }
  if (!isObject(value)) return [];
  const more = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  return Object.entries(value).flatMap(([key, inner]) => {
    const own = schema.properties?.[key] ?? more;
    const before = isObject(old) ? old[key] : undefined;
    return own === undefined ? [] : ruleFaults(inner, before, own, path === '' ? key : `${path}.${key}`);
  });
}

/** Items have a before only where the list says how to tell them apart. */
function counterpart(item: unknown, old: unknown, schema: JsonSchema): unknown {
  if (schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(old) || !isObject(item)) return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return old.find((one: unknown) => isObject(one) && keys.every((key) => isEqual(one[key], item[key])));
}

function faultsOf(rule: ValidationRule, value: unknown, old: unknown, path: string): readonly Cause[] {
  if (/\boldSelf\b/.test(rule.rule) && (old === undefined || old === null)) return [];
  const field = path === '' ? '<nil>' : path;
  const shown = shownValue(value);
  try {
    if (evaluate(expressionOf(rule.rule), { self: value, oldSelf: old }) === true) return [];
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return [
      {
        field,
        reason: 'FieldValueInvalid',
        message: `Invalid value: ${shown}rule evaluation error: ${error.message}`,
      },
    ];
  }
  const message = rule.message ?? `failed rule: ${rule.rule}`;
  return [{ field, reason: rule.reason ?? 'FieldValueInvalid', message: `Invalid value: ${shown}${message}` }];
}

/** Objects and lists are not shown. */
function shownValue(value: unknown): string {
  return typeof value === 'object' ? '' : `${JSON.stringify(value)}: `;
}
