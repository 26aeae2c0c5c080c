/**
 * Checks that the source keeps the layers of `tools/layers.json`: which folder may import which, which package belongs
 * to one file alone, which files are pure, where `process` may be read, which fact has one file that others import, that
 * no imports form a cycle, and that the rows allow no more than what is imported. Imports of types and `import()` count too.
 * Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, matchesGlob, normalize } from 'node:path';
import { findCycles } from './find-cycles.ts';

type FolderRule = { readonly folders: readonly string[]; readonly packages: readonly string[] };

/** A fact that stands in one place: `pattern`, a regular expression, matches its copies; `home` lists who may have it. */
type FactRule = { readonly pattern: string; readonly home: readonly string[] };

/** The rules as the JSON file holds them. */
export type Layers = {
  /** By folder, or by a file that may import what the rest of its folder may not. */
  readonly folders: Readonly<Record<string, FolderRule>>;
  readonly packageOnlyIn: Readonly<Record<string, readonly string[]>>;
  readonly facts: Readonly<Record<string, FactRule>>;
  /** Programs whose own folders are in layers: what lies beside the folders puts them together, and none imports it. */
  readonly layered: readonly string[];
  readonly free: readonly string[];
  /** Free folders that import nothing of these. */
  readonly apart: Readonly<Record<string, readonly string[]>>;
  readonly pure: readonly string[];
  readonly impure: readonly string[];
  readonly processOnlyIn: readonly string[];
};

/** A source file: its path from the root, with `/`, and its text. */
export type Source = { readonly path: string; readonly text: string };

/** Lists every violation of `layers` among `sources`, one line each. */
export function checkLayers(layers: Layers, sources: readonly Source[]): readonly string[] {
  const violations: string[] = [];
  const edges = new Map<string, readonly string[]>();
  for (const source of sources) {
    const imports = importsOf(source);
    edges.set(
      source.path,
      imports.filter((entry) => entry.target.startsWith('./')).map((entry) => resolve(source, entry)),
    );
    violations.push(...checkImports(layers, source, imports), ...checkWords(layers, source));
  }
  for (const cycle of findCycles(edges)) violations.push(`import cycle: ${cycle.join(' -> ')}`);
  for (const program of layers.layered) {
    const cycles = findCycles(folderEdges(program, edges));
    for (const cycle of cycles) violations.push(`import cycle of folders: ${cycle.join(' -> ')}`);
  }
  return violations;
}

/** Lists what the rows of `layers` allow and no file of `sources` needs: a row says what its folder imports, and no more. */
export function findUnused(layers: Layers, sources: readonly Source[]): readonly string[] {
  const used = new Set<string>();
  for (const source of sources) {
    const folder = folderOf(layers, source.path);
    if (folder === undefined) continue;
    for (const entry of importsOf(source)) {
      const target = entry.target.startsWith('./') ? folderOf(layers, resolve(source, entry)) : packageOf(entry.target);
      used.add(`${folder} ${target ?? ''}`);
    }
  }
  return Object.entries(layers.folders).flatMap(([folder, { folders, packages }]) =>
    [...folders, ...packages]
      .filter((target) => !used.has(`${folder} ${target}`))
      .map((target) => `tools/layers.json: ${folder} may import ${target}, and does not: remove it from its row`),
  );
}

/** Returns which folder of a program imports which; the files beside the folders count as one folder. */
function folderEdges(
  program: string,
  edges: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, readonly string[]> {
  const folderIn = (path: string): string => {
    const [folder, file] = path.slice(program.length + 1).split('/');
    return file === undefined ? program : `${program}/${folder}`;
  };
  const found = new Map<string, Set<string>>();
  for (const [path, targets] of edges) {
    if (!path.startsWith(`${program}/`)) continue;
    const from = folderIn(path);
    const known = found.get(from) ?? new Set();
    found.set(from, known);
    for (const target of targets) {
      if (target.startsWith(`${program}/`) && folderIn(target) !== from) known.add(folderIn(target));
    }
  }
  return new Map([...found].map(([folder, targets]) => [folder, [...targets].sort()]));
}

type Import = { readonly target: string; readonly runtime: boolean };

const IMPORT = /^\s*(import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm;
const DYNAMIC_IMPORT = /\b(?:import|require)\(\s*'([^']+)'/g;

function importsOf(source: Source): readonly Import[] {
  const fixed = [...source.text.matchAll(IMPORT)].map((match) => ({
    target: relativeOrBare(match[3] ?? ''),
    runtime: match[2] === undefined,
  }));
  const dynamic = [...source.text.matchAll(DYNAMIC_IMPORT)].map((match) => ({
    target: relativeOrBare(match[1] ?? ''),
    runtime: true,
  }));
  return [...fixed, ...dynamic];
}

/** Lists the files that a source imports more than types of, by their path from the root. */
export function loadedBy(source: Source): readonly string[] {
  const own = importsOf(source).filter(({ target, runtime }) => runtime && target.startsWith('./'));
  return own.map((entry) => resolve(source, entry));
}

function relativeOrBare(target: string): string {
  return target.startsWith('.') ? `./${target}` : target;
}

function resolve(source: Source, entry: Import): string {
  return normalize(join(dirname(source.path), entry.target.slice(2)));
}

function folderOf(layers: Layers, path: string): string | undefined {
  const known = Object.keys(layers.folders).filter((folder) => path === folder || path.startsWith(`${folder}/`));
  return known.sort((a, b) => b.length - a.length)[0];
}

function checkImports(layers: Layers, source: Source, imports: readonly Import[]): readonly string[] {
  const folder = folderOf(layers, source.path);
  const isFree = layers.free.some((free) => source.path.startsWith(`${free}/`));
  if (isFree) return checkApart(layers, source, imports);
  if (folder === undefined) return [`${source.path}: its folder has no rule in tools/layers.json`];
  const rule = layers.folders[folder];
  const isPure = layers.pure.some((glob) => matchesGlob(source.path, glob));
  const violations: string[] = [];
  for (const entry of imports) {
    if (entry.target.startsWith('./')) {
      const target = folderOf(layers, resolve(source, entry));
      if (target !== folder && (target === undefined || !rule?.folders.includes(target))) {
        violations.push(`${source.path}: ${folder} may not import ${resolve(source, entry)}`);
      }
    } else if (entry.target.startsWith('node:')) {
      const allowed = ['node:path', 'node:buffer', 'node:crypto', 'node:net'];
      // node:net is pure where only its address checks are used; node:crypto where only hashes are.
      if (isPure && entry.runtime && !allowed.includes(entry.target)) {
        violations.push(`${source.path}: is pure, may not import ${entry.target}`);
      }
    } else {
      violations.push(...checkPackage(layers, source, rule, entry.target));
    }
  }
  return violations;
}

function checkApart(layers: Layers, source: Source, imports: readonly Import[]): readonly string[] {
  const [folder = ''] = source.path.split('/');
  const others = layers.apart[folder] ?? [];
  return imports
    .filter(({ target }) => target.startsWith('./'))
    .map((entry) => resolve(source, entry))
    .filter((target) => others.some((other) => target.startsWith(`${other}/`)))
    .map((target) => `${source.path}: ${folder} may not import ${target}`);
}

function packageOf(target: string): string {
  const [scope = target, name] = target.split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

function checkPackage(layers: Layers, source: Source, rule: FolderRule | undefined, target: string): readonly string[] {
  const name = packageOf(target);
  if (builtinModules.includes(name)) return [`${source.path}: write node:${name}`];
  const owners = layers.packageOnlyIn[name];
  if (owners !== undefined) {
    return owners.includes(source.path) ? [] : [`${source.path}: only ${owners.join(', ')} may import ${name}`];
  }
  return rule?.packages.includes(name) ? [] : [`${source.path}: may not import the package ${name}`];
}

function checkWords(layers: Layers, source: Source): readonly string[] {
  if (layers.free.some((free) => source.path.startsWith(`${free}/`))) return [];
  const code = source.text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const violations: string[] = [];
  for (const [fact, { pattern, home }] of Object.entries(layers.facts)) {
    const copy = home.includes(source.path) ? undefined : new RegExp(pattern).exec(code)?.[0];
    if (copy !== undefined) violations.push(`${source.path}: "${copy}" is in ${home.join(', ')} (${fact}): import it`);
  }
  if (layers.pure.some((glob) => matchesGlob(source.path, glob))) {
    for (const word of layers.impure.filter((candidate) => code.includes(candidate))) {
      violations.push(`${source.path}: is pure, may not use ${word}`);
    }
  }
  if (/\bprocess\.(env|argv|exit|cwd)\b/.test(code)) {
    if (!layers.processOnlyIn.some((glob) => matchesGlob(source.path, glob))) {
      violations.push(`${source.path}: only main.ts may read process.env, process.argv or exit`);
    }
  }
  return violations;
}

if (import.meta.main) {
  const layers: Layers = JSON.parse(readFileSync('tools/layers.json', 'utf8'));
  const paths = globSync('**/*.ts', { exclude: ['node_modules/**', 'dist/**'] }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const violations = [...checkLayers(layers, sources), ...findUnused(layers, sources)];
  for (const violation of violations) console.error(violation);
  console.error(`layers: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
