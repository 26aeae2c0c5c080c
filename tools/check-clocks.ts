/**
 * Checks that the wall clock is read only where `tools/wall-clock.json` says, as often as it says, and why: it may jump,
 * so it measures no span. Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** Where a file reads the wall clock, or times of others that are of a wall clock. */
type WallClockUse = {
  /** Lines with such a reading. */
  readonly lines: number;
  /** What the time is for; why a step of the clock does no harm, or what bounds the harm. */
  readonly why: string;
};

/** Names that are a wall clock wherever code reads them. */
const NAMES: readonly string[] = ['Date', 'Temporal', 'DateTimeFormat', 'timeOrigin'];
/** Properties that are a time of a wall clock: dates of certificates, times of files. */
const TIMES: readonly string[] = [
  ...['timeOrigin', 'validTo', 'validFrom', 'validToDate', 'validFromDate'],
  ...['atime', 'mtime', 'ctime', 'birthtime'].flatMap((name) => [name, `${name}Ms`, `${name}Ns`]),
];
/** The face of a clock that is the wall clock. */
const FACE = 'nowMs';
/** Objects whose `nowMs` is a number that the caller read of whatever clock; it was counted there. */
const MOMENTS: readonly string[] = ['view', 'request', 'pacing'];
/** A source without any of these words needs no look at its tree. */
const ANY = new RegExp([...NAMES, ...TIMES, FACE, String.raw`\bids\b`].join('|'));

/**
 * Lists the lines of a source that read a wall clock, by number from 1: `Date` in any form, a clock's `nowMs` called,
 * passed on or taken out of it, `ids.now`, times of certificates and files. Comments, texts and types do not count. Pure.
 * @throws SyntaxError
 */
export function findWallClock(text: string): readonly number[] {
  if (!ANY.test(text)) return [];
  const lines = syntaxNodes(text).flatMap(wallClockLines);
  return [...new Set(lines)].sort((a, b) => a - b);
}

function wallClockLines(node: SyntaxNode): readonly number[] {
  const line = (where: unknown): number => (where as SyntaxNode).loc?.start.line ?? 0;
  if (node.type === 'Identifier') return NAMES.includes(nameOf(node)) ? [line(node)] : [];
  if (node.type === 'CallExpression') return nameOf(node['callee']) === FACE ? [line(node['callee'])] : [];
  if (node.type === 'MemberExpression') {
    return isTime(nameOf(node), node['object']) ? [line(node['property'])] : [];
  }
  if (node.type === 'VariableDeclarator' || node.type === 'AssignmentExpression') {
    const pattern = (node['id'] ?? node['left']) as SyntaxNode;
    if (pattern.type !== 'ObjectPattern') return [];
    const parts = pattern['properties'] as readonly SyntaxNode[];
    return parts.filter((part) => isTime(nameOf(part['key']), node['init'] ?? node['right'])).map(line);
  }
  return [];
}

/** Reports whether the property of this name, of this object, is a wall clock or a time of one. */
function isTime(property: string, object: unknown): boolean {
  if (NAMES.includes(property) || TIMES.includes(property)) return true;
  if (property === 'now') return nameOf(object) === 'ids';
  return property === FACE && !MOMENTS.includes(nameOf(object));
}

/** The name of what an expression ends with: of `a.b`, `a['b']` and `a.b()` it is b. */
function nameOf(node: unknown): string {
  const { type, name, value, property, callee, expression } = (node ?? {}) as Readonly<Record<string, unknown>>;
  if (type === 'Identifier') return String(name);
  if (type === 'Literal') return String(value);
  if (type === 'MemberExpression') return nameOf(property);
  if (type === 'CallExpression') return nameOf(callee);
  return type === 'ChainExpression' ? nameOf(expression) : '';
}

/** Compares the sources with the table: a use without an entry, another number of lines, an entry without a use. Pure. */
export function checkClocks(
  sources: readonly { readonly path: string; readonly text: string }[],
  table: Readonly<Record<string, WallClockUse>>,
): readonly string[] {
  const found = new Map(sources.map(({ path, text }) => [path, findWallClock(text)]));
  const wrong = [...found].flatMap(([path, lines]) => {
    const wanted = table[path]?.lines ?? 0;
    if (lines.length === wanted) return [];
    const where = lines.length === 0 ? '' : ` (${lines.join(', ')})`;
    return [
      `${path}: ${lines.length} lines read the wall clock${where}, ${wanted} in tools/wall-clock.json; ` +
        'measure spans with monotonicMs, or write there why a step does no harm',
    ];
  });
  const gone = Object.keys(table).filter((path) => !found.has(path));
  const mute = Object.entries(table).filter(([, { why }]) => why.trim().length < MIN_WHY);
  return [
    ...wrong,
    ...gone.map((path) => `tools/wall-clock.json: there is no ${path}`),
    ...mute.map(([path]) => `tools/wall-clock.json: ${path} needs a reason`),
  ];
}

/** A reason of fewer characters is none. */
const MIN_WHY = 20;

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'sim/**', 'bench/**', 'tools/**', 'examples/**', '*.ts'];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const table = JSON.parse(readFileSync('tools/wall-clock.json', 'utf8')) as Readonly<Record<string, WallClockUse>>;
  const violations = checkClocks(sources, table);
  for (const violation of violations) console.error(violation);
  console.error(`clocks: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
