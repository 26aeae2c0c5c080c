import { isEqual, isObject } from '../object.ts';
import { type Cause, requiredValue, show, unsupportedValue } from '../resources/causes.ts';
import { hasFormat } from './formats.ts';
import type { JsonSchema } from './json-schema.ts';

/** Lists what is wrong with a value by its schema, in the words of the API server; CEL rules are apart. */
export function validate(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (value === null && schema.nullable === true) return [];
  const wrongType = typeFault(value, schema, path);
  if (wrongType !== undefined) return [wrongType];
  return [
    ...enumFaults(value, schema, path),
    ...textFaults(value, schema, path),
    ...numberFaults(value, schema, path),
    ...listFaults(value, schema, path),
    ...objectFaults(value, schema, path),
    ...junctorFaults(value, schema, path),
  ];
}

function fault(path: string, value: unknown, message: string, reason = 'FieldValueInvalid'): Cause {
  return {
    field: named(path),
    reason,
    message: `Invalid value: ${show(value)}: ${path === '' ? '' : `${path} `}in body ${message}`,
  };
}

/** The root has no name; the API server shows it as such. */
function named(path: string): string {
  return path === '' ? '<nil>' : path;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function typeFault(value: unknown, schema: JsonSchema, path: string): Cause | undefined {
  const actual = typeName(value);
  if (schema['x-kubernetes-int-or-string'] === true) {
    if (actual === 'integer' || actual === 'string') return undefined;
  } else if (schema.type === undefined || schema.type === actual) return undefined;
  else if (schema.type === 'number' && actual === 'integer') return undefined;
  const wanted = schema['x-kubernetes-int-or-string'] === true ? 'integer,string' : (schema.type ?? '');
  const message = `${path} in body must be of type ${wanted}: ${JSON.stringify(actual)}`;
  return {
    field: named(path),
    reason: 'FieldValueTypeInvalid',
    message: `Invalid value: ${JSON.stringify(actual)}: ${message}`,
  };
}

function enumFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (schema.enum === undefined || schema.enum.some((one) => isEqual(one, value))) return [];
  return [unsupportedValue(named(path), value, schema.enum)];
}

function textFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (typeof value !== 'string') return [];
  const length = [...value].length;
  const { minLength, maxLength, pattern, format } = schema;
  return [
    ...(maxLength !== undefined && length > maxLength
      ? [
          {
            field: named(path),
            reason: 'FieldValueTooLong',
            message: `Too long: may not be more than ${maxLength} bytes`,
          },
        ]
      : []),
    ...(minLength !== undefined && length < minLength
      ? [fault(path, value, `should be at least ${minLength} chars long`)]
      : []),
    ...(pattern !== undefined && !new RegExp(pattern, 'u').test(value)
      ? [fault(path, value, `should match '${pattern}'`)]
      : []),
    ...(format !== undefined && !hasFormat(value, format)
      ? [fault(path, value, `must be of type ${format}: ${JSON.stringify(value)}`, 'FieldValueTypeInvalid')]
      : []),
  ];
}

function numberFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (typeof value !== 'number') return [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const isBelow = minimum !== undefined && (exclusiveMinimum === true ? value <= minimum : value < minimum);
  const isAbove = maximum !== undefined && (exclusiveMaximum === true ? value >= maximum : value > maximum);
  return [
    ...(isBelow
      ? [fault(path, value, `should be greater than${exclusiveMinimum === true ? '' : ' or equal to'} ${minimum}`)]
      : []),
    ...(isAbove
      ? [fault(path, value, `should be less than${exclusiveMaximum === true ? '' : ' or equal to'} ${maximum}`)]
      : []),
    ...(multipleOf !== undefined && value % multipleOf !== 0
      ? [fault(path, value, `should be a multiple of ${multipleOf}`)]
      : []),
  ];
}

function listFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (!Array.isArray(value)) return [];
  const { minItems, maxItems, items } = schema;
  return [
    ...(maxItems !== undefined && value.length > maxItems
      ? [
          {
            field: named(path),
            reason: 'FieldValueTooMany',
            message: `Too many: ${value.length}: must have at most ${maxItems} items`,
          },
        ]
      : []),
    ...(minItems !== undefined && value.length < minItems
      ? [fault(path, value.length, `should have at least ${minItems} items`)]
      : []),
    ...value.flatMap((item: unknown, index) => (items === undefined ? [] : validate(item, items, `${path}[${index}]`))),
    ...duplicateFaults(value, schema, path),
  ];
}

function duplicateFaults(items: readonly unknown[], schema: JsonSchema, path: string): readonly Cause[] {
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'set' && kind !== 'map') return [];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyOf = (item: unknown) =>
    kind === 'map' && isObject(item) ? Object.fromEntries(keys.map((key) => [key, item[key]])) : item;
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const key = JSON.stringify(keyOf(item));
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [{ field: `${path}[${index}]`, reason: 'FieldValueDuplicate', message: `Duplicate value: ${key}` }];
  });
}

function objectFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  if (!isObject(value)) return [];
  const { minProperties, maxProperties, required, properties, additionalProperties } = schema;
  const count = Object.keys(value).length;
  const more = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const prefix = path === '' ? '' : `${path}.`;
  return [
    ...(maxProperties !== undefined && count > maxProperties
      ? [
          {
            field: named(path),
            reason: 'FieldValueTooMany',
            message: `Too many: ${count}: must have at most ${maxProperties} items`,
          },
        ]
      : []),
    ...(minProperties !== undefined && count < minProperties
      ? [fault(path, count, `should have at least ${minProperties} properties`)]
      : []),
    ...(required ?? []).filter((key) => value[key] === undefined).map((key) => requiredValue(`${prefix}${key}`)),
    ...Object.entries(value).flatMap(([key, inner]) => {
      const own = properties?.[key] ?? more;
      return own === undefined || inner === undefined ? [] : validate(inner, own, `${prefix}${key}`);
    }),
  ];
}

/** What is wrong with a value as a whole is said of no field. */
function nameless(message: string): Cause {
  return { field: '<nil>', reason: 'FieldValueInvalid', message: `Invalid value: "": ${message}` };
}

function junctorFaults(value: unknown, schema: JsonSchema, path: string): readonly Cause[] {
  const { allOf, anyOf, oneOf, not } = schema;
  const passes = (one: JsonSchema) => validate(value, one, path).length === 0;
  return [
    ...(allOf ?? []).flatMap((one) => validate(value, one, path)),
    ...(anyOf !== undefined && !anyOf.some(passes)
      ? [
          nameless(`"${path}" must validate at least one schema (anyOf)`),
          ...(anyOf[0] === undefined ? [] : validate(value, anyOf[0], path)),
        ]
      : []),
    ...(oneOf !== undefined && oneOf.filter(passes).length !== 1
      ? [nameless(`"${path}" must validate one and only one schema (oneOf)`)]
      : []),
    ...(not !== undefined && passes(not) ? [nameless(`"${path}" must not validate the schema (not)`)] : []),
  ];
}
