import { isObject } from '../../../sim/support/netns.ts';

/** The paths of a JSON document with what stands there: `.addresses[].ip` is a `string`, `.addresses[].use` one of some words. */
export type Shape = Readonly<Record<string, string>>;

/** Lists the paths of a document. Below a path of `maps` the names are data: `*` stands for them. */
export function shapeOf(value: unknown, maps: readonly string[] = []): Shape {
  const found = new Map<string, Set<string>>();
  visit(value, '', maps, found);
  const rows = [...found].map(([path, types]) => [path, [...types].sort().join(' or ')] as const);
  return Object.fromEntries(rows.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function visit(value: unknown, path: string, maps: readonly string[], found: Map<string, Set<string>>): void {
  const types = found.get(path || '.') ?? new Set();
  found.set(path || '.', types.add(typeOf(value, path)));
  if (Array.isArray(value)) for (const item of value) visit(item, `${path}[]`, maps, found);
  if (!isObject(value)) return;
  const isMap = maps.includes(path);
  for (const [name, item] of Object.entries(value)) visit(item, `${path}.${isMap ? '*' : name}`, maps, found);
}

/** Names of fields that hold one of a few words: these are as public as the names. */
const WORDS = [
  'kind',
  'state',
  'use',
  'verdict',
  'severity',
  'direction',
  'lane',
  'owner',
  'source',
  'result',
  'plugin',
  'status',
];

function typeOf(value: unknown, path: string): string {
  if (value === null) return 'null';
  if (typeof value === 'string' && WORDS.some((word) => path.endsWith(`.${word}`))) return `'${value}'`;
  return Array.isArray(value) ? 'array' : typeof value;
}
