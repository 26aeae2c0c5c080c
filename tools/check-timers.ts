/**
 * Checks that every delay goes through `runtime/clock.ts`: Node ends a timer of 2^31 ms or more after one. Elsewhere nothing
 * names `setTimeout`, `setInterval` or `AbortSignal.timeout`. In the agent nothing but what opens its machine knows the time
 * of the process at all, or ends it: the rest goes by the clock that the agent is started with, and ends that agent. Prints every violation and exits 1;
 * prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** The only file with timers of Node. */
const HOME = 'runtime/clock.ts';
const ON_CLOCK = 'timerOn, intervalOn or inTime of runtime/clock-timers.ts';
const TIMERS: readonly string[] = ['setTimeout', 'setInterval'];
/** What waits for, or tells, the time of the process and of no other clock; and what ends the process by an error. */
const OF_PROCESS: readonly string[] = [
  ...['runInBackground', 'endByError'],
  ...['setImmediate', 'performance', 'hrtime', 'systemClock'],
  ...['startTimer', 'startInterval', 'timeoutSignal'],
];
/** A source without any of these words needs no look at its tree. */
const ANY = new RegExp(`\\b(?:timeout|timers|${[...TIMERS, ...OF_PROCESS].join('|')})\\b`);

/** The agent's files that have the time of the process: they open its machine, or are not of a running agent. */
const OPENERS: readonly string[] = [
  ...['agent/main.ts', 'agent/uninstall/', 'agent/install/install-executables.ts'],
  ...['agent/attachment/spool.ts', 'agent/supply/supply-file.ts'],
  ...['agent/machine.ts', 'agent/grpc/', 'agent/server/', 'agent/node/refuse-product.ts', 'agent/ops/explainer.ts'],
];

/** Reports whether a file goes by the clock that its program is started with, and by no other. */
export function hasOwnClock(path: string): boolean {
  return path.startsWith('agent/') && !OPENERS.some((opener) => path.startsWith(opener));
}

/**
 * Lists the lines of a source that name a timer of Node, by number from 1; with `of-process` also those that name another
 * way to the time of the process. Pure. @throws SyntaxError
 */
export function findTimers(text: string, found: 'timers' | 'of-process' = 'timers'): readonly number[] {
  if (!ANY.test(text)) return [];
  const names = found === 'timers' ? TIMERS : [...TIMERS, ...OF_PROCESS];
  const lines = syntaxNodes(text)
    .filter((node) => isTimer(node, names))
    .map(({ loc }) => loc?.start.line ?? 0);
  return [...new Set(lines)].sort((a, b) => a - b);
}

/** Reports whether a node names a timer of Node, called or not. That of a socket has its own bound. */
function isTimer(node: SyntaxNode, names: readonly string[]): boolean {
  // By another name they would not be found.
  if (node.type === 'ImportDeclaration') return isWholeModule(node);
  if (node.type === 'ImportSpecifier') return names.includes(nameOf(node['imported']));
  if (node.type === 'Identifier') return names.includes(nameOf(node));
  if (node.type !== 'MemberExpression') return false;
  const [object, property] = [nameOf(node['object']), nameOf(node['property'])];
  if (object === 'globalThis' || object === 'process') return names.includes(property);
  return object === 'AbortSignal' && property === 'timeout';
}

/** Reports whether an import takes a module of timers as a whole: its members are named otherwise. */
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
    findTimers(readFileSync(path, 'utf8'), hasOwnClock(path) ? 'of-process' : 'timers').map((line) =>
      hasOwnClock(path)
        ? `${path}:${line}: the time or the end of the process; use the agent's own background and clock, and ${ON_CLOCK}`
        : `${path}:${line}: a timer of Node; use startTimer, startInterval or timeoutSignal of ${HOME}`,
    ),
  );
  for (const violation of violations) console.error(violation);
  console.error(`timers: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
