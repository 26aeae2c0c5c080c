import { isObject } from '../../sim/support/netns.ts';

const ADDED =
  'add it to the file of this name in test/frozen/next (docs/testing.md, "What goes into test/frozen/next") and write a CHANGELOG line';
const CHANGED =
  'a changed public name needs a CHANGELOG line, an upgrade note and a skew test (bytes of a message to which a field was added: only the new bytes in test/frozen/next)';

/** Lists how a product's public names differ from their record, each with what it asks for; empty when they do not. */
export function findDifferences(recorded: unknown, now: unknown): readonly string[] {
  return differencesOf(asJson(recorded), asJson(now), '');
}

/** The same, but for what was only added. */
export function findLosses(recorded: unknown, now: unknown): readonly string[] {
  return findDifferences(recorded, now).filter((line) => !line.startsWith('added: '));
}

function differencesOf(recorded: unknown, now: unknown, path: string): readonly string[] {
  if (recorded === undefined) return [`added: ${path} = ${JSON.stringify(now)}: ${ADDED}`];
  if (now === undefined) return [`gone: ${path} = ${JSON.stringify(recorded)}: ${CHANGED}`];
  if (isObject(recorded) && isObject(now)) {
    const names = [...new Set([...Object.keys(recorded), ...Object.keys(now)])];
    return names.flatMap((name) => differencesOf(recorded[name], now[name], path === '' ? name : `${path} > ${name}`));
  }
  if (Array.isArray(recorded) && Array.isArray(now) && recorded.length === now.length) {
    return recorded.flatMap((item: unknown, index) => differencesOf(item, now[index], `${path}[${index}]`));
  }
  const [before, after] = [JSON.stringify(recorded), JSON.stringify(now)];
  return before === after ? [] : [`changed: ${path}: ${before} -> ${after}: ${CHANGED}`];
}

/** Returns a value as JSON has it: without what is undefined, and keys of all objects in order. */
export function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, item: unknown) => (isObject(item) ? inOrder(item) : item)) ?? 'null');
}

function inOrder(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(object).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
