/**
 * Checks that every delay goes through `runtime/clock.ts`: Node ends a timer of 2^31 ms or more after one. Elsewhere nothing
 * names `setTimeout`, `setInterval` or `AbortSignal.timeout`. Prints every violation and exits 1; prints one line and exits 0
 * when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** The only file with timers of Node. */
const HOME = 'runtime/clock.ts';
const TIMERS: readonly string[] = ['setTimeout', 'setInterval'];
/** A source without any of these words needs no look at its tree. */
const ANY = /\b(?:setTimeout|setInterval|timeout|timers)\b/;

/** Lists the lines of a source that name a timer of Node, by number from 1. Pure. @throws SyntaxError */
export function findTimers(text: string): readonly number[] {
  if (!ANY.test(text)) return [];
  const lines = syntaxNodes(text)
    .filter(isTimer)
    .map(({ loc }) => loc?.start.line ?? 0);
  return [...new Set(lines)].sort((a, b) => a - b);
}

/** Tells whether a node names a timer of Node, called or not. That of a socket has its own bound. */
function isTimer(node: SyntaxNode): boolean {
  // By another name they would not be found.
  if (node.type === 'ImportDeclaration') return isWholeModule(node);
  if (node.type === 'ImportSpecifier') return TIMERS.includes(nameOf(node['imported']));
  if (node.type === 'Identifier') return TIMERS.includes(nameOf(node));
  if (node.type !== 'MemberExpression') return false;
  const [object, property] = [nameOf(node['object']), nameOf(node['property'])];
  return object === 'globalThis' ? TIMERS.includes(property) : object === 'AbortSignal' && property === 'timeout';
}

/** Tells whether an import takes a module of timers as a whole: its members are named otherwise. */
function isWholeModule(node: SyntaxNode): boolean {
  const { value } = node['source'] as { readonly value: unknown };
  const specifiers = node['specifiers'] as readonly SyntaxNode[];
  const isOfTimers = /^(?:node:)?timers(?:\/promises)?$/.test(String(value));
  return isOfTimers && specifiers.some(({ type }) => type !== 'ImportSpecifier');
}

function nameOf(node: unknown): string {
  const { type, name } = (node ?? {}) as Readonly<Record<string, unknown>>;
  return type === 'Identifier' ? String(name) : '';
}

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'bench/**', 'tools/**', 'examples/**', '*.ts', HOME];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const violations = paths.flatMap((path) =>
    findTimers(readFileSync(path, 'utf8')).map(
      (line) => `${path}:${line}: a timer of Node; use startTimer, startInterval or timeoutSignal of ${HOME}`,
    ),
  );
  for (const violation of violations) console.error(violation);
  console.error(`timers: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
