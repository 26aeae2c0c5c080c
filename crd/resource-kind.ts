import type { FieldTable } from './field.ts';
import type { CelRule } from './schema.ts';

/** A column of `kubectl get`. `wide` ones show with `-o wide` only. */
export type PrinterColumn = {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly wide?: true;
};

/** One kind of custom resource: the only place from which its types, decoder, schema, YAML and docs are made. */
export type ResourceKind<F extends FieldTable = FieldTable> = {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Cluster' | 'Namespaced';
  /** What its name is made of. */
  readonly named: string;
  readonly about: string;
  /** The fields beside `apiVersion`, `kind` and `metadata`. There is no status subresource: no role may write one. */
  readonly fields: F;
  readonly rules: readonly CelRule[];
  readonly columns: readonly PrinterColumn[];
};

/** Keeps the type of a kind's field table. */
export function resourceKind<const F extends FieldTable>(kind: ResourceKind<F>): ResourceKind<F> {
  return kind;
}

/** The column that every kind ends with. */
export const AGE_COLUMN: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
