import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellCommandsOf } from '../cluster/doc-commands.ts';

/** A command of docs/uninstall.md, and the heading that it stands under. */
export type PageCommand = { readonly heading: string; readonly line: string };

const LAST_RESORT = 'Take our finalizer off';
const ALL: readonly PageCommand[] = shellCommandsOf(
  readFileSync(join(import.meta.dirname, '../../docs/uninstall.md'), 'utf8'),
).flatMap(({ heading, lines }) => lines.map((line) => ({ heading, line })));

/** The commands that are carried out in order. */
export const STEPS = ALL.filter(({ heading }) => heading !== LAST_RESORT);

/**
 * Returns the commands of the last resort, filled in for an object: the first lists its finalizers, the second takes ours off
 * that is at a place among them. @throws Error when the page has others
 */
export function lastResort(object: string, finalizer: string) {
  const [list, patch, ...more] = ALL.filter(({ heading }) => heading === LAST_RESORT);
  if (list === undefined || patch === undefined || more.length > 0) throw new Error(`no two commands: ${LAST_RESORT}`);
  const fill = ({ heading, line }: PageCommand, index: string): PageCommand => ({
    heading,
    line: line
      .replaceAll('NAMESPACE', 'default')
      .replaceAll('OBJECT', object)
      .replaceAll('INDEX', index)
      .replaceAll('FINALIZER', finalizer),
  });
  return { list: fill(list, ''), patch: (index: number | string) => fill(patch, String(index)) };
}

/** Reads what the page has listed: of what has a finalizer of the kind that it names, `[NAMESPACE, KIND/NAME]`. */
export function balancedIn(printed: string): readonly (readonly [namespace: string, object: string])[] {
  const rows = printed.split('\n').map((row) => row.split(' '));
  return rows.flatMap(([namespace = '', object = '', finalizers = '']) =>
    /\/load-balancer-cleanup"/.test(finalizers) ? [[namespace, object.toLowerCase()] as const] : [],
  );
}

/** Fills `SERVICE-OR-INGRESS...` in: one command for each namespace. */
export function perNamespace(line: string, balanced: ReturnType<typeof balancedIn>): readonly string[] {
  return [...Map.groupBy(balanced, ([namespace]) => namespace)].map(([namespace, rows]) =>
    line
      .replace('SERVICE-OR-INGRESS...', rows.map(([, object]) => object).join(' '))
      .replaceAll('NAMESPACE', namespace),
  );
}
