/**
 * Checks that everything that is exported is named by another file: what only its own file needs is not exported. Tests,
 * benchmarks, tools and examples count as users. Prints every violation and exits 1; prints one line and exits 0 when there
 * is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob, normalize } from 'node:path';
import type { Source } from './check-layers.ts';
import { MESSAGE_FILES } from './gen-messages.ts';

/**
 * Tables of names that others define; they are complete for the reader who compares them with the original. And tables that
 * are made from a contract as a whole.
 */
const CATALOGUES = ['netlink/uapi/*.ts', 'sysctl/sysctl-key.ts', ...Object.keys(MESSAGE_FILES)];

const EXPORT =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|const|let|class|type|interface) ([A-Za-z_$][\w$]*)/gm;
const IMPORT = /^\s*(?:import|export)\s+(?:type\s+)?([^'";]*?)\sfrom\s+'(\.[^']+)'/gm;
const WHOLE_FILE = /\b(?:import|require)\(\s*'(\.[^']+)'/g;

/** Lists every export that no other file names, one line each. */
export function checkExports(
  sources: readonly Source[],
  catalogues: readonly string[] = CATALOGUES,
): readonly string[] {
  const used = new Set<string>();
  // `import *` and `import()` may name anything of a file.
  const open = new Set<string>();
  for (const { path, text } of sources) {
    const target = (spec: string): string => normalize(join(dirname(path), spec));
    for (const [, clause = '', spec = ''] of text.matchAll(IMPORT)) {
      if (clause.includes('*')) open.add(target(spec));
      for (const name of namesOf(clause)) used.add(`${target(spec)}#${name}`);
    }
    for (const [, spec = ''] of text.matchAll(WHOLE_FILE)) open.add(target(spec));
  }
  return sources
    .filter(({ path }) => !open.has(path) && !catalogues.some((glob) => matchesGlob(path, glob)))
    .flatMap(({ path, text }) =>
      [...text.matchAll(EXPORT)]
        .map(([, name = '']) => name)
        .filter((name) => !used.has(`${path}#${name}`))
        .map((name) => `${path}: ${name} is exported, and no other file names it`),
    );
}

/** Reads `{ a, type B, c as d }` and default imports; the names are those of the exporting file. */
function namesOf(clause: string): readonly string[] {
  const [, inBraces = ''] = /\{([^}]*)\}/.exec(clause) ?? [];
  return inBraces
    .split(',')
    .map((part) => part.trim().replace(/^type\s+/, ''))
    .map((part) => part.split(/\s+as\s+/)[0] ?? '')
    .filter((name) => name !== '');
}

if (import.meta.main) {
  const paths = globSync('**/*.{ts,js}', { exclude: ['node_modules/**', 'dist/**'] }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const violations = checkExports(sources).filter((line) => !line.includes('.js: '));
  for (const violation of violations) console.error(violation);
  console.error(`exports: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
