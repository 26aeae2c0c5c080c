import { isObject } from '../object.ts';
import type { JsonSchema } from './json-schema.ts';

/** A value as the schema lets it be, and the paths of the fields that it does not have. */
type Pruned = { readonly value: unknown; readonly unknown: readonly string[] };

/** Takes away the fields that a schema does not have. */
export function prune(value: unknown, schema: JsonSchema, path = ''): Pruned {
  if (Array.isArray(value)) return pruneItems(value, schema, path);
  if (!isObject(value)) return { value, unknown: [] };
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const more = schema.additionalProperties;
  const kept: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [key, inner] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`;
    const own = schema.properties?.[key] ?? (typeof more === 'object' ? more : undefined);
    if (own !== undefined) {
      const pruned = prune(inner, own, at);
      kept[key] = pruned.value;
      unknown.push(...pruned.unknown);
    } else if (keepsUnknown || more === true) kept[key] = inner;
    else unknown.push(at);
  }
  return { value: kept, unknown };
}

function pruneItems(items: readonly unknown[], schema: JsonSchema, path: string): Pruned {
  if (schema.items === undefined) return { value: items, unknown: [] };
  const { items: own } = schema;
  const pruned = items.map((item, index) => prune(item, own, `${path}[${index}]`));
  return { value: pruned.map((one) => one.value), unknown: pruned.flatMap((one) => one.unknown) };
}

/** Fills in the defaults of a schema; null where null is not allowed counts as absent. */
export function withDefaults(value: unknown, schema: JsonSchema): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => withDefaults(item, items));
  }
  if (!isObject(value)) return value;
  const filled: Record<string, unknown> = { ...value };
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    const present = filled[key];
    const isAbsent = present === undefined || (present === null && inner.nullable !== true);
    if (isAbsent && inner.default !== undefined) filled[key] = inner.default;
    else if (isAbsent) delete filled[key];
    if (filled[key] !== undefined) filled[key] = withDefaults(filled[key], inner);
  }
  const more = schema.additionalProperties;
  if (typeof more === 'object') {
    for (const key of Object.keys(filled)) {
      if (schema.properties?.[key] === undefined) filled[key] = withDefaults(filled[key], more);
    }
  }
  return filled;
}
