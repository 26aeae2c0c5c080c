import { isEqual, isObject, type JsonObject } from '../object.ts';
import { PatchError } from './json-patch.ts';
import type { MergeKeys } from './merge-keys.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList/';
const SET_ORDER = '$setElementOrder/';

/**
 * Applies a strategic merge patch and returns the result: as a merge patch, but lists with a merge key merge item by
 * item. Knows the directives `$patch: delete|replace|merge`, `$deleteFromPrimitiveList`, `$setElementOrder`, `$retainKeys`.
 * @throws PatchError
 */
export function applyStrategicMerge(document: unknown, patch: unknown, mergeKeys: MergeKeys): unknown {
  return mergeAt(document, patch, [], mergeKeys);
}

function mergeAt(document: unknown, patch: unknown, path: readonly string[], mergeKeys: MergeKeys): unknown {
  if (!isObject(patch)) return patch;
  if (patch[DIRECTIVE] === 'replace') return plain(patch);
  if (patch[DIRECTIVE] === 'delete') return {};
  const retained = patch[RETAIN_KEYS];
  const result: Record<string, unknown> = isObject(document) ? { ...document } : {};
  if (Array.isArray(retained)) {
    for (const key of Object.keys(result)) if (!retained.includes(key)) delete result[key];
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue;
    if (value === null) delete result[key];
    else if (Array.isArray(value)) result[key] = mergeList(result[key], value, [...path, key], mergeKeys);
    else result[key] = mergeAt(result[key], value, [...path, key], mergeKeys);
  }
  applyListDirectives(result, patch, path, mergeKeys);
  return result;
}

function plain(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')));
}

function mergeList(
  document: unknown,
  patch: readonly unknown[],
  path: readonly string[],
  mergeKeys: MergeKeys,
): readonly unknown[] {
  const merge = mergeKeys(path);
  const present: readonly unknown[] = Array.isArray(document) ? document : [];
  if (merge === undefined || patch.some((item) => isObject(item) && item[DIRECTIVE] === 'replace')) {
    return patch.filter((item) => !isObject(item) || item[DIRECTIVE] === undefined);
  }
  if (merge === 'set') return [...new Set([...present, ...patch])];
  return patch.reduce<readonly unknown[]>((items, item) => {
    const index = items.findIndex((candidate) => isSameItem(candidate, item, merge.keys, path));
    if (isObject(item) && item[DIRECTIVE] === 'delete') return index < 0 ? items : items.toSpliced(index, 1);
    const merged = mergeAt(items[index], item, [...path, '[]'], mergeKeys);
    return index < 0 ? items.toSpliced(items.length, 0, merged) : items.with(index, merged);
  }, present);
}

function isSameItem(a: unknown, b: unknown, keys: readonly string[], path: readonly string[]): boolean {
  if (!isObject(a) || !isObject(b)) throw new PatchError('DOES_NOT_APPLY', `${path.join('.')}: items must be objects`);
  return keys.every((key) => {
    if (b[key] === undefined) {
      throw new PatchError('DOES_NOT_APPLY', `map: ${JSON.stringify(b)} does not contain declared merge key: ${key}`);
    }
    return isEqual(a[key], b[key]);
  });
}

function applyListDirectives(
  result: Record<string, unknown>,
  patch: JsonObject,
  path: readonly string[],
  mergeKeys: MergeKeys,
): void {
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith(DELETE_PRIMITIVES) && Array.isArray(value)) {
      const key = name.slice(DELETE_PRIMITIVES.length);
      const items = result[key];
      if (Array.isArray(items)) result[key] = items.filter((item) => !value.includes(item));
    }
    if (name.startsWith(SET_ORDER) && Array.isArray(value)) {
      const key = name.slice(SET_ORDER.length);
      const items = result[key];
      if (Array.isArray(items)) result[key] = ordered(items, value, mergeKeys([...path, key]));
    }
  }
}

/** Puts the items that `order` names in its order; those that it does not name come after what they came after. */
function ordered(
  items: readonly unknown[],
  order: readonly unknown[],
  merge: ReturnType<MergeKeys>,
): readonly unknown[] {
  const keys = typeof merge === 'object' ? merge.keys : [];
  const rank = (item: unknown) =>
    order.findIndex((wanted) =>
      keys.length > 0 && isObject(wanted) && isObject(item)
        ? keys.every((key) => isEqual(wanted[key], item[key]))
        : isEqual(wanted, item),
    );
  let last = -1;
  const ranked = items.map((item) => {
    const own = rank(item);
    last = own >= 0 ? own : last;
    return { item, at: own >= 0 ? own : last + 0.5 };
  });
  return ranked.sort((a, b) => a.at - b.at).map(({ item }) => item);
}
