import type { FieldTable } from './field.ts';
import { API_GROUP, VERSION } from './names.ts';
import type { CelRule } from './schema.ts';

/** A column of `kubectl get`. `wide` columns appear only with `-o wide`. */
type PrinterColumn = {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly wide?: true;
};

/** One kind of custom resource: the only source of its types, decoder, schema, YAML and docs. */
export type ResourceKind<F extends FieldTable = FieldTable> = {
  readonly kind: string;
  /** Absent: the group and the version of this project. */
  readonly group?: string;
  readonly version?: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Cluster' | 'Namespaced';
  /** How its name is formed. */
  readonly named: string;
  readonly about: string;
  /**
   * The fields besides `apiVersion`, `kind` and `metadata`. There is no status subresource: no role allows writes to
   * one.
   */
  readonly fields: F;
  readonly rules: readonly CelRule[];
  readonly columns: readonly PrinterColumn[];
};

/** Returns its argument and thereby infers the type of the field table. */
export function resourceKind<const F extends FieldTable>(kind: ResourceKind<F>): ResourceKind<F> {
  return kind;
}

/** Returns the API group of a kind, and its version there. */
export function groupVersionOf({ group = API_GROUP, version = VERSION }: Pick<ResourceKind, 'group' | 'version'>): {
  readonly group: string;
  readonly version: string;
} {
  return { group, version };
}

/** The last column of every kind. */
export const AGE_COLUMN: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
