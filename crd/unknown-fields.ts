import { isRecord } from '../runtime/decode.ts';
import type { FieldTable } from './field.ts';

const HEAD = ['apiVersion', 'kind', 'metadata'];

/** Lists the fields of a resource that its table does not have, as paths. Pure. */
export function unknownFieldsOf(object: Readonly<Record<string, unknown>>, fields: FieldTable): readonly string[] {
  return walk(object, fields, '', HEAD);
}

function walk(value: unknown, fields: FieldTable, prefix: string, allowed: readonly string[]): readonly string[] {
  if (!isRecord(value)) return [];
  const isKnown = (key: string) => Object.hasOwn(fields, key) || allowed.includes(key);
  const unknown = Object.keys(value).filter((key) => !isKnown(key));
  return [
    ...unknown.map((key) => `${prefix}${key}`),
    ...Object.entries(fields).flatMap(([key, field]) => {
      const inner = field.value.fields;
      return inner === undefined ? [] : walkValue(value[key], inner, `${prefix}${key}`);
    }),
  ];
}

function walkValue(value: unknown, fields: FieldTable, path: string): readonly string[] {
  if (!Array.isArray(value)) return walk(value, fields, `${path}.`, []);
  return value.flatMap((item: unknown, index) => walk(item, fields, `${path}[${index}].`, []));
}
