import type { KubeObject } from '../object.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Cause } from './causes.ts';

/** A column of a table: what `kubectl get` shows. */
export type TableColumn = {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly priority?: number;
  readonly description?: string;
  readonly cell: (object: KubeObject, nowMs: number) => unknown;
};

/** What is particular to a resource when it is written. All are pure. */
export type Strategy = {
  /** Fills in what the server fills in, and drops what a client may not say at creation. */
  readonly prepareCreate?: (object: KubeObject) => KubeObject;
  readonly prepareUpdate?: (object: KubeObject, old: KubeObject) => KubeObject;
  readonly validate?: (object: KubeObject, old: KubeObject | undefined) => readonly Cause[];
  /** The same for a write to the status. */
  readonly prepareStatus?: (object: KubeObject) => KubeObject;
  readonly validateStatus?: (object: KubeObject) => readonly Cause[];
  /** Gives an object what all of its kind share, after it was prepared; `others` are those that are there. */
  readonly allocate?: (
    object: KubeObject,
    others: readonly KubeObject[],
  ) => { readonly object: KubeObject; readonly faults: readonly Cause[] };
  /** Seconds that a deletion leaves the object before it goes; undefined: it goes at once. */
  readonly graceSeconds?: (object: KubeObject, asked: number | undefined) => number | undefined;
};

/** A resource that the server serves. */
export type ApiResource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly string[];
  /** PUT of what is not there creates it. */
  readonly createsOnUpdate: boolean;
  /** PUT needs the resourceVersion of the read. */
  readonly needsResourceVersion: boolean;
  /** Which changes count in metadata.generation: none, those of spec, or all but metadata. */
  readonly generation: 'none' | 'spec' | 'all';
  /** DELETE answers with the object rather than with a Status. */
  readonly returnsDeleted: boolean;
  readonly strategy: Strategy;
  readonly columns: readonly TableColumn[];
  /** Of a custom resource: what its objects are checked, pruned and filled in by. */
  readonly schema?: JsonSchema;
};

/** Names a resource regardless of its version: the key of its objects in the store. */
export function storageKey({ group, plural }: Pick<ApiResource, 'group' | 'plural'>): string {
  return `${group}/${plural}`;
}

/** Returns `v1` or `apps/v1`. */
export function groupVersion({ group, version }: Pick<ApiResource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}
