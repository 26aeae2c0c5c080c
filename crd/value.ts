import { boolean, integer, isRecord, list, oneOf, type RecordOf, record } from '../runtime/decode.ts';
import type { FieldTable, Value } from './field.ts';
import { anyIpAddress, cidr, ipAddress } from './ip-text.ts';
import type { CelRule } from './schema.ts';

/** A whole number from `min` to `max`, both included. */
export function wholeNumber(min: number, max: number): Value<number> {
  return { decoder: integer(min, max), schema: { type: 'integer', format: 'int64', minimum: min, maximum: max } };
}

/** Largest growth of a counter in one write, so that a mistake cannot exhaust the range of numbers. */
export const MAX_GROWTH = 1_000_000_000;

/** A counter that only grows: the API server refuses a value below the stored one, and one far above it. */
export function growingNumber(what: string): Value<number> {
  const { decoder, schema } = wholeNumber(0, Number.MAX_SAFE_INTEGER);
  const rule = { rule: 'self >= oldSelf', message: `${what} may only grow` };
  const step = {
    rule: `self - oldSelf <= ${MAX_GROWTH}`,
    message: `${what} may not grow by more than ${MAX_GROWTH}`,
  };
  return { decoder, schema: { ...schema, 'x-kubernetes-validations': [rule, step] } };
}

/** True or false. */
export const flag: Value<boolean> = { decoder: boolean, schema: { type: 'boolean' } };

/** One of the given words. */
export function choice<const T extends string>(values: readonly T[]): Value<T> {
  return { decoder: oneOf(values), schema: { type: 'string', enum: values } };
}

/**
 * A text that matches `pattern`; faults describe it as `expected`. The pattern must have the same meaning in Go's RE2:
 * no look-around, no `\d` that should match beyond ASCII.
 */
export function matchingText(pattern: RegExp, expected: string, maxLength: number): Value<string> {
  return {
    decoder: (value, path, faults) => {
      if (typeof value === 'string' && value.length <= maxLength && pattern.test(value)) return value;
      faults.add(path, expected, value);
      return undefined;
    },
    schema: { type: 'string', pattern: pattern.source, maxLength },
  };
}

/** A text for people, in any form. Longer ones are refused, so that an object stays small. */
export function sentence(maxLength: number): Value<string> {
  return {
    decoder: (value, path, faults) => {
      if (typeof value === 'string' && value.length <= maxLength) return value;
      faults.add(path, `a text of at most ${maxLength} characters`, value);
      return undefined;
    },
    schema: { type: 'string', maxLength },
  };
}

/** An IPv4 address. */
export const ipv4: Value<string> = { decoder: ipAddress(4), schema: { type: 'string', format: 'ipv4' } };
/** An IPv6 address; read in any form, written in the shortest one. */
export const ipv6: Value<string> = { decoder: ipAddress(6), schema: { type: 'string', format: 'ipv6' } };
/** An address of either family. The length bound keeps CEL's cost estimate down. */
export const anyIp: Value<string> = {
  decoder: anyIpAddress,
  schema: { type: 'string', maxLength: 45, anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] },
};

/** A network of one family. The schema does not check host bits; the decoder does. */
export function network(family: 4 | 6): Value<string> {
  const pattern = family === 4 ? '^[0-9.]+/[0-9]{1,2}$' : '^[0-9a-fA-F:.]+:[0-9a-fA-F:.]*/[0-9]{1,3}$';
  return { decoder: cidr(family), schema: { type: 'string', format: 'cidr', pattern, maxLength: 49 } };
}

const MAC = /^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$/;

/** A MAC address; read in either case, written in lower case. */
export const macAddress: Value<string> = {
  decoder: (value, path, faults) => {
    if (typeof value === 'string' && MAC.test(value)) return value.toLowerCase();
    faults.add(path, 'a MAC address such as 20:90:6f:12:34:56', value);
    return undefined;
  },
  schema: { type: 'string', pattern: MAC.source },
};

const INSTANT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z$/;

/** A time in UTC, in the format of RFC 3339. */
export const instant: Value<string> = {
  decoder: (value, path, faults) => {
    if (typeof value === 'string' && INSTANT.test(value) && !Number.isNaN(Date.parse(value))) return value;
    faults.add(path, 'a moment such as 2026-01-31T23:59:59Z', value);
    return undefined;
  },
  schema: { type: 'string', format: 'date-time' },
};

/** An object with the given fields. Unknown fields are not a fault: another release may have written them. */
export function objectOf<const F extends FieldTable>(fields: F, rules: readonly CelRule[] = []): Value<RecordOf<F>> {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, { ...field.value.schema, description: field.about }]),
  );
  const required = Object.keys(fields).filter((name) => fields[name]?.optional === false);
  return {
    decoder: record(fields, 'ignore'),
    fields,
    schema: {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}),
    },
  };
}

/** Bounds of a list. `keys` are the fields that identify an item: the API server refuses two equal ones. */
type ListBounds = { readonly maxItems: number; readonly keys?: readonly string[] };

/** A list of values. */
export function listOf<T>(item: Value<T>, bounds: ListBounds): Value<readonly T[]> {
  const decodeItems = list(item.decoder);
  return {
    decoder: (value, path, faults) => {
      if (!Array.isArray(value) || value.length <= bounds.maxItems) return decodeItems(value, path, faults);
      faults.add(path, `at most ${bounds.maxItems} items`, value.length);
      return undefined;
    },
    ...(item.fields === undefined ? {} : { fields: item.fields }),
    schema: {
      type: 'array',
      items: item.schema,
      maxItems: bounds.maxItems,
      ...(bounds.keys === undefined
        ? { 'x-kubernetes-list-type': 'atomic' }
        : { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': bounds.keys }),
    },
  };
}

/** Texts by name, such as tags or labels. */
export function textsByName(maxProperties: number): Value<Readonly<Record<string, string>>> {
  return {
    decoder: (value, path, faults) => {
      const isGood =
        isRecord(value) &&
        Object.keys(value).length <= maxProperties &&
        Object.values(value).every((text) => typeof text === 'string' && text.length <= MAX_TEXT);
      // Every value was checked in the line above.
      if (isGood) return value as Readonly<Record<string, string>>;
      faults.add(path, `at most ${maxProperties} texts by name`, value);
      return undefined;
    },
    schema: { type: 'object', maxProperties, additionalProperties: { type: 'string', maxLength: MAX_TEXT } },
  };
}

const MAX_TEXT = 255;
