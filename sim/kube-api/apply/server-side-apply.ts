import { ApiError } from '../api-error.ts';
import { isEqual, type KubeObject, type ManagedFieldsEntry, withMetadata, without } from '../object.ts';
import type { MergeKeys } from '../patch/merge-keys.ts';
import { applyStrategicMerge } from '../patch/strategic-merge.ts';
import { type Leaves, leavesOf, pathOf, removePath, showPath } from './field-set.ts';
import { entryOf, isWriters, type Managers, managersOf, toManagedFields, type Writer } from './managed-fields.ts';

/** What server-side apply needs beside the object. */
type ApplyOptions = { readonly writer: Writer; readonly force: boolean; readonly mergeKeys: MergeKeys };

/**
 * Applies a configuration to an object: sets what it says, takes away what the same manager said before and nobody else
 * owns, and refuses to change what others own unless forced.
 * @throws ApiError Conflict naming each field and its manager
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
 */
export function applyConfiguration(live: KubeObject, configuration: KubeObject, options: ApplyOptions): KubeObject {
  const { writer, mergeKeys } = options;
  const wanted = leavesOf(configuration, mergeKeys);
  const present = leavesOf(live, mergeKeys);
  const managers = managersBefore(live, present, writer);
  const disputed = findConflicts(managers, wanted, present, writer);
  if (disputed.length > 0 && !options.force) throw conflictError(disputed);
  const lost = new Set(disputed.map(({ path }) => path));
  const others = managers
    .filter(({ entry }) => !isWriters(entry, writer))
    .map((one) => ({ ...one, paths: new Set([...one.paths].filter((path) => !lost.has(path))) }));
  const before = managers.find(({ entry }) => isWriters(entry, writer))?.paths ?? new Set();
  const dropped = [...before].filter((path) => !wanted.has(path) && !others.some(({ paths }) => paths.has(path)));
  // The deepest first: an item goes after its fields.
  const deepest = dropped.map(pathOf).sort((a, b) => b.length - a.length);
  const kept = deepest.reduce<unknown>((object, path) => removePath(object, path), live);
  const { metadata } = configuration;
  const own = {
    ...configuration,
    metadata: without(metadata, 'managedFields', 'resourceVersion', 'uid', 'generation'),
  };
  // Both are objects, so the merge is one.
  const merged = applyStrategicMerge(kept, own, mergeKeys) as KubeObject;
  const after = [...others, { entry: entryOf(writer), paths: new Set(wanted.keys()) }];
  return withMetadata(merged, { managedFields: keepTimes(managers, after) });
}

function managersBefore(live: KubeObject, present: Leaves, writer: Writer): Managers {
  const managers = managersOf(live);
  if (managers.length > 0 || live.metadata.resourceVersion === undefined) return managers;
  const entry = entryOf({ ...writer, manager: 'before-first-apply', operation: 'Update', subresource: '' });
  return [{ entry, paths: new Set(present.keys()) }];
}

type Dispute = { readonly path: string; readonly entry: ManagedFieldsEntry };

function findConflicts(managers: Managers, wanted: Leaves, present: Leaves, writer: Writer): readonly Dispute[] {
  return managers
    .filter(({ entry }) => !isWriters(entry, writer))
    .flatMap(({ entry, paths }) =>
      [...wanted]
        .filter(([path, value]) => paths.has(path) && !isEqual(present.get(path), value))
        .map(([path]) => ({ path, entry })),
    );
}

/** Who applied is named by name alone; who updated, by the version too. */
function nameOf({ manager, operation, subresource, apiVersion }: ManagedFieldsEntry): string {
  const named = `${JSON.stringify(manager)}${subresource === undefined ? '' : ` with subresource ${JSON.stringify(subresource)}`}`;
  return operation === 'Apply' ? named : `${named} using ${apiVersion}`;
}

function conflictError(disputes: readonly Dispute[]): ApiError {
  const causes = disputes.map(({ path, entry }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${nameOf(entry)}`,
    field: showPath(pathOf(path)),
  }));
  const [first] = causes;
  const isOne = causes.length === 1;
  const named = isOne
    ? `${first?.message}: ${first?.field}`
    : causes.map((one) => `${one.message}: ${one.field}`).join('\n');
  return new ApiError(409, 'Conflict', `Apply failed with ${causes.length} conflict${isOne ? '' : 's'}: ${named}`, {
    causes,
  });
}

/** A manager whose fields are as before keeps its time, so that an apply without effect changes nothing. */
function keepTimes(before: Managers, after: Managers): ReturnType<typeof toManagedFields> {
  const old = before.map(({ entry, paths }) => ({ entry, paths: [...paths].sort() }));
  return toManagedFields(
    after.map((one) => {
      const paths = [...one.paths].sort();
      const same = old.find(
        ({ entry, paths: then }) =>
          entry.manager === one.entry.manager && entry.operation === one.entry.operation && isEqual(then, paths),
      );
      return same === undefined ? one : { ...one, entry: { ...one.entry, time: same.entry.time } };
    }),
  );
}
