import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { applyMergePatch } from '../../sim/kube-api/patch/merge-patch.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';

const FOLDER = import.meta.dirname;
/** Holds what was added since the last release, as JSON merge patches (RFC 7386) of that release's files. */
const NEXT = 'next';
/** Characters that a value may take on one line. */
const LINE = 120;

/** Lists the releases that are recorded, the oldest first. */
export function frozenReleases(): readonly string[] {
  const folders = readdirSync(FOLDER).filter((name) => /^\d+\.\d+\.\d+$/.test(name));
  return folders.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

/** Reads one file of a release; undefined when that release has none. */
export function readRelease(release: string, name: string): JsonObject | undefined {
  const path = join(FOLDER, release, `${name}.json`);
  if (!existsSync(path)) return undefined;
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (!isObject(value)) throw new Error(`${path}: no JSON object`);
  return value;
}

/** Reads a record in force: of the newest release that has it, with what was added since. @throws Error when there is none */
export function readFrozen(name: string): JsonObject {
  const newest = frozenReleases()
    .toReversed()
    .flatMap((release) => readRelease(release, name) ?? [])
    .at(0);
  const added = readRelease(NEXT, name);
  if (newest === undefined && added === undefined) throw new Error(`${name}: never recorded`);
  const whole = withAdded(newest ?? {}, added ?? {});
  if (!isObject(whole)) throw new Error(`${name}: no JSON object`);
  return whole;
}

/** Applies what was added: a merge patch, in which an object for a list patches its items by index, or adds some. */
function withAdded(recorded: unknown, added: unknown): unknown {
  if (Array.isArray(recorded) && isObject(added)) {
    const items = recorded.map((item: unknown, index) =>
      Object.hasOwn(added, index) ? withAdded(item, added[index]) : item,
    );
    const more = Object.entries(added).filter(([index]) => Number(index) >= recorded.length);
    return [...items, ...more.map(([, item]) => item)];
  }
  if (!isObject(recorded) || !isObject(added)) return isObject(added) ? applyMergePatch(recorded, added) : added;
  const nested = Object.entries(added).filter(([name]) => typeof recorded[name] === 'object' && isObject(added[name]));
  const inner = Object.fromEntries(nested.map(([name, one]) => [name, withAdded(recorded[name], one)]));
  return { ...(applyMergePatch(recorded, withoutNames(added, inner)) as JsonObject), ...inner };
}

function withoutNames(object: JsonObject, names: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !Object.hasOwn(names, name)));
}

/** Reads one file of every release that has it: what must still be understood. */
export function readEach(name: string): readonly { readonly release: string; readonly content: JsonObject }[] {
  return frozenReleases().flatMap((release) => {
    const content = readRelease(release, name);
    return content === undefined ? [] : [{ release, content }];
  });
}

/** Writes one file of a record. */
export function writeRecord(folder: string, name: string, value: unknown): void {
  const path = join(folder, `${name}.json`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${render(value, '')}\n`);
}

/** Renders JSON with sorted keys, behind what is on the line already; what fits on it is one line. */
function render(value: unknown, indent: string, before = ''): string {
  const inline = spaced(value);
  if (indent.length + before.length + inline.length < LINE || typeof value !== 'object' || value === null)
    return inline;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => `${inner}${render(item, inner)}`).join(',\n')}\n${indent}]`;
  }
  const lines = Object.entries(sorted(value) as JsonObject).map(([name, item]) => {
    const key = `${JSON.stringify(name)}: `;
    return `${inner}${key}${render(item, inner, key)}`;
  });
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

/** Renders JSON on one line, with a blank behind colons and commas. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const entries = Object.entries(sorted(value) as JsonObject);
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}: ${spaced(item)}`).join(', ')}}`;
}

/** Returns a value with the keys of all objects in it in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]));
}
