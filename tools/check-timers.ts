/**
 * Checks that a delay which is calculated goes through `runtime/clock.ts`: Node ends a timer of 2^31 ms or more after one.
 * Elsewhere `setTimeout`, `setInterval` and `AbortSignal.timeout` take a constant of their file, or `Math.min` with one. Prints
 * every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { MAX_TIMER_MS } from '../runtime/clock.ts';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** The only file whose timers may have any delay. */
const HOME = 'runtime/clock.ts';
const TIMERS: readonly string[] = ['setTimeout', 'setInterval'];
/** A source without any of these words needs no look at its tree. */
const ANY = /\b(?:setTimeout|setInterval|timeout)\b/;

/** Lists the lines of a source with a timer whose delay is calculated or too long, by number from 1. Pure. @throws SyntaxError */
export function findComputedDelays(text: string): readonly number[] {
  if (!ANY.test(text)) return [];
  const nodes = syntaxNodes(text);
  const constants = constantsOf(nodes);
  const lines = nodes.filter((node) => isComputed(node, constants)).map(({ loc }) => loc?.start.line ?? 0);
  return [...new Set(lines)].sort((a, b) => a - b);
}

function isComputed(node: SyntaxNode, constants: ReadonlyMap<string, unknown>): boolean {
  // By another name it would not be found.
  if (node.type === 'ImportSpecifier') return TIMERS.includes(nameOf(node['imported']));
  if (node.type !== 'CallExpression') return false;
  const [first, second] = node['arguments'] as readonly unknown[];
  const delay = isTimer(node['callee']) ? second : isTimeoutSignal(node['callee']) ? first : undefined;
  if (delay === undefined) return false;
  const ms = mostOf(delay, constants);
  return ms === undefined || ms > MAX_TIMER_MS;
}

/** Tells whether what is called is a timer of Node: that of a socket has its own bound. */
function isTimer(callee: unknown): boolean {
  const { type, object } = callee as SyntaxNode;
  if (type === 'MemberExpression' && nameOf(object) !== 'globalThis') return false;
  return TIMERS.includes(nameOf(callee));
}

function isTimeoutSignal(callee: unknown): boolean {
  const { type, object } = callee as SyntaxNode;
  return type === 'MemberExpression' && nameOf(callee) === 'timeout' && nameOf(object) === 'AbortSignal';
}

/** The expressions of what is declared once in a file, by name. */
function constantsOf(nodes: readonly SyntaxNode[]): ReadonlyMap<string, unknown> {
  const declared = nodes.filter(({ type, kind }) => type === 'VariableDeclaration' && kind === 'const');
  const all = declared.flatMap(({ declarations }) => declarations as readonly SyntaxNode[]);
  const byName = Map.groupBy(all, ({ id }) => nameOf(id));
  const once = [...byName].flatMap(([name, [first, ...others]]) =>
    first === undefined || others.length > 0 ? [] : ([[name, first['init']]] as const),
  );
  return new Map<string, unknown>([...once, ['MAX_TIMER_MS', { type: 'Literal', value: MAX_TIMER_MS }]]);
}

/** The value of a delay, or the most that it can be; undefined where the file does not say. */
function mostOf(node: unknown, constants: ReadonlyMap<string, unknown>, depth = 0): number | undefined {
  const {
    type,
    value,
    name,
    operator,
    left,
    right,
    callee,
    arguments: args,
  } = (node ?? {}) as Readonly<Record<string, unknown>>;
  if (depth > MAX_DEPTH) return undefined;
  if (type === 'Literal') return typeof value === 'number' ? value : undefined;
  if (type === 'Identifier') return mostOf(constants.get(String(name)), constants, depth + 1);
  if (type === 'BinaryExpression') {
    const [a, b] = [left, right].map((side) => mostOf(side, constants, depth + 1));
    if (a === undefined || b === undefined) return undefined;
    return CALCULATIONS[String(operator)]?.(a, b);
  }
  if (type !== 'CallExpression' || nameOf(callee) !== 'min') return undefined;
  const bounds = (args as readonly unknown[]).flatMap((arg) => mostOf(arg, constants, depth + 1) ?? []);
  return bounds.length === 0 ? undefined : Math.min(...bounds);
}

const MAX_DEPTH = 8;
const CALCULATIONS: Readonly<Record<string, (a: number, b: number) => number>> = {
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '**': (a, b) => a ** b,
};

/** The name of what an expression ends with: of `a.b` it is b. */
function nameOf(node: unknown): string {
  const { type, name, property } = (node ?? {}) as Readonly<Record<string, unknown>>;
  if (type === 'Identifier') return String(name);
  return type === 'MemberExpression' ? nameOf(property) : '';
}

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'bench/**', 'tools/**', 'examples/**', '*.ts', HOME];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const violations = paths.flatMap((path) =>
    findComputedDelays(readFileSync(path, 'utf8')).map(
      (line) => `${path}:${line}: a timer with a calculated delay; use startTimer or startInterval of ${HOME}`,
    ),
  );
  for (const violation of violations) console.error(violation);
  console.error(`timers: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
