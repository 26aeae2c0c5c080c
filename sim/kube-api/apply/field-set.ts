import { isEqual, isObject, type JsonObject, type Tree } from '../object.ts';
import type { MergeKeys } from '../patch/merge-keys.ts';

/** A step to a field: `f:name`, `k:{"name":"a"}` for an item of a list by its keys, `v:"a"` for an item of a set. */
type FieldPath = readonly string[];

/** The fields of an object with their values, by path; a path is kept as its JSON text. */
export type Leaves = ReadonlyMap<string, unknown>;

const NOBODYS = new Set(
  ['apiVersion', 'kind'].concat(
    [
      'name',
      'namespace',
      'uid',
      'resourceVersion',
      'generation',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'managedFields',
      'selfLink',
      'generateName',
    ].map((field) => `metadata.${field}`),
  ),
);

/** Lists the fields of an object that somebody can own. */
export function leavesOf(object: JsonObject, mergeKeys: MergeKeys): Leaves {
  const leaves = new Map<string, unknown>();
  walk(object, [], [], mergeKeys, leaves);
  return leaves;
}

function walk(
  value: unknown,
  path: FieldPath,
  names: readonly string[],
  mergeKeys: MergeKeys,
  leaves: Map<string, unknown>,
): void {
  if (NOBODYS.has(names.join('.'))) return;
  const merge = Array.isArray(value) ? mergeKeys(names) : undefined;
  if (isObject(value) && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) {
      walk(inner, [...path, `f:${key}`], [...names, key], mergeKeys, leaves);
    }
  } else if (Array.isArray(value) && merge === 'set') {
    for (const item of value) leaves.set(text([...path, `v:${JSON.stringify(item)}`]), item);
  } else if (Array.isArray(value) && typeof merge === 'object') {
    for (const item of value) {
      const at = [...path, itemKey(item, merge.keys)];
      leaves.set(text(at), ITEM);
      walk(item, at, [...names, '[]'], mergeKeys, leaves);
    }
  } else if (value !== undefined && value !== null && path.length > 0) leaves.set(text(path), value);
}

/** That an item is in a list is owned too, whatever its fields are. */
const ITEM = 'item';

function itemKey(item: unknown, keys: readonly string[]): string {
  const own = isObject(item) ? item : {};
  return `k:${JSON.stringify(Object.fromEntries([...keys].sort().map((key) => [key, own[key]])))}`;
}

/** Writes a path as one text. */
function text(path: FieldPath): string {
  return JSON.stringify(path);
}

/** Reads a path back. */
export function pathOf(textual: string): FieldPath {
  // Only `text` makes these.
  return JSON.parse(textual) as FieldPath;
}

/** Shows a path as errors do: `.spec.containers[name="a"].image`. */
export function showPath(path: FieldPath): string {
  return path
    .map((step) => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      if (step.startsWith('v:')) return `[=${step.slice(2)}]`;
      const keys = Object.entries(JSON.parse(step.slice(2)) as JsonObject);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');
}

/** Makes the tree that managedFields hold. */
export function toTree(paths: Iterable<string>): Tree {
  const root: Record<string, unknown> = {};
  for (const path of paths) {
    const steps = pathOf(path);
    const last = steps.reduce<Record<string, unknown>>((node, step) => {
      const inner = isObject(node[step]) ? { ...node[step] } : {};
      node[step] = inner;
      return inner;
    }, root);
    if (steps.at(-1)?.startsWith('k:') === true) last['.'] = {};
  }
  return root as Tree;
}

/** Reads the tree of managedFields. */
export function fromTree(tree: Tree, path: FieldPath = []): readonly string[] {
  const keys = Object.keys(tree);
  if (keys.length === 0) return [text(path)];
  return keys.flatMap((key) => (key === '.' ? [text(path)] : fromTree(tree[key] ?? {}, [...path, key])));
}

/** Takes a field away from an object. Pure; a path that is not there changes nothing. */
export function removePath(value: unknown, path: FieldPath): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return undefined;
  if (step.startsWith('f:')) {
    const key = step.slice(2);
    if (!isObject(value) || !Object.hasOwn(value, key)) return value;
    const inner = removePath(value[key], rest);
    if (inner !== undefined) return { ...value, [key]: inner };
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  }
  if (!Array.isArray(value)) return value;
  const index = value.findIndex((item: unknown) => isItem(item, step));
  if (index < 0) return value;
  const inner = removePath(value[index], rest);
  return inner === undefined ? value.toSpliced(index, 1) : value.with(index, inner);
}

function isItem(item: unknown, step: string): boolean {
  const wanted: unknown = JSON.parse(step.slice(2));
  if (step.startsWith('v:') || !isObject(wanted)) return isEqual(item, wanted);
  return isObject(item) && Object.entries(wanted).every(([key, value]) => isEqual(item[key], value));
}
