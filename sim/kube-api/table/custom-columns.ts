import { isObject, type KubeObject } from '../object.ts';
import type { TableColumn } from '../resources/api-resource.ts';
import { ageOf, NAME_COLUMN } from './built-in-columns.ts';
import { readJsonPath } from './json-path.ts';

/** Makes the columns of a custom resource from its `additionalPrinterColumns`; without any, its age. */
export function customColumns(columns: unknown): readonly TableColumn[] {
  const listed = Array.isArray(columns) ? columns.filter(isObject) : [];
  const wanted = listed.length > 0 ? listed : [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }];
  return [
    NAME_COLUMN,
    ...wanted.map((column): TableColumn => {
      const { name, type, jsonPath, priority, description, format } = column as Record<string, unknown>;
      return {
        name: String(name),
        type: String(type),
        ...(typeof format === 'string' ? { format } : {}),
        ...(typeof priority === 'number' ? { priority } : {}),
        description:
          typeof description === 'string'
            ? description
            : `Custom resource definition column (in JSONPath format): ${String(jsonPath)}`,
        cell: (object, nowMs) => cellOf(object, String(jsonPath), String(type), nowMs),
      };
    }),
  ];
}

function cellOf(object: KubeObject, jsonPath: string, type: string, nowMs: number): unknown {
  const values = readJsonPath(object, jsonPath);
  const [first] = values;
  if (first === undefined) return null;
  if (type === 'date') return ageOf(String(first), nowMs);
  if (type === 'integer' || type === 'number') return Number(first);
  if (type === 'boolean') return first;
  return values.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(' ');
}
