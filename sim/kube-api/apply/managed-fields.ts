import type { KubeObject, ManagedFieldsEntry } from '../object.ts';
import { isEqual } from '../object.ts';
import type { MergeKeys } from '../patch/merge-keys.ts';
import { fromTree, leavesOf, toTree } from './field-set.ts';

/** Who writes, in which way, and when. */
export type Writer = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
};

/** The fields of each manager: the entry without its fields, and the paths. */
export type Managers = readonly { readonly entry: ManagedFieldsEntry; readonly paths: ReadonlySet<string> }[];

/** Reads metadata.managedFields. */
export function managersOf(object: KubeObject): Managers {
  return (object.metadata.managedFields ?? []).map((entry) => ({ entry, paths: new Set(fromTree(entry.fieldsV1)) }));
}

/** Writes metadata.managedFields; managers without fields go. */
export function toManagedFields(managers: Managers): readonly ManagedFieldsEntry[] {
  return managers
    .filter(({ paths }) => paths.size > 0)
    .map(({ entry, paths }) => ({ ...entry, fieldsV1: toTree([...paths].sort()) }));
}

/** Reports whether an entry is a writer's own. */
export function isWriters(entry: ManagedFieldsEntry, writer: Writer): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === writer.operation &&
    (entry.subresource ?? '') === writer.subresource
  );
}

/** Makes a writer's entry, with no fields yet. */
export function entryOf(writer: Writer): ManagedFieldsEntry {
  return {
    manager: writer.manager,
    operation: writer.operation,
    apiVersion: writer.apiVersion,
    time: writer.time,
    fieldsType: 'FieldsV1',
    fieldsV1: {},
    ...(writer.subresource === '' ? {} : { subresource: writer.subresource }),
  };
}

/**
 * Returns the managers after an update that was not an apply: what it changed is the writer's, what is gone nobody's.
 * Kept only for objects that were applied at least once; the first apply gives all that is there to `before-first-apply`.
 */
export function afterUpdate(old: KubeObject, next: KubeObject, writer: Writer, mergeKeys: MergeKeys): Managers {
  const before = leavesOf(old, mergeKeys);
  const after = leavesOf(next, mergeKeys);
  const changed = [...after].filter(([path, value]) => !before.has(path) || !isEqual(before.get(path), value));
  const isChanged = new Set(changed.map(([path]) => path));
  const others = managersOf(old).map((one) => ({
    ...one,
    paths: new Set([...one.paths].filter((path) => after.has(path) && !isChanged.has(path))),
  }));
  const own = others.find(({ entry }) => isWriters(entry, writer));
  const mine = { entry: entryOf(writer), paths: new Set([...(own?.paths ?? []), ...isChanged]) };
  return [...others.filter((one) => one !== own), mine];
}
