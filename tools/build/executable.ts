import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, copyFile, link, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setRunPath } from './run-path.ts';
import { GENERATOR_FLAGS, seaOptions } from './sea-options.ts';
import { cacheNameOf } from './split-scripts.ts';

/** Describes what to make of a bundle. */
type ExecutableSpec = {
  readonly name: string;
  /** Other names of the same file, as hard links: one copy on disk and in the page cache. */
  readonly links: readonly string[];
  readonly code: string;
  /** Texts that go into it as assets, by name; ASCII only. */
  readonly assets?: Readonly<Record<string, string>>;
  /** Scripts that go into it as assets, likewise, each with its code cache in a second asset. */
  readonly scripts?: Readonly<Record<string, string>>;
  /** Node's flags that it always runs with; none by default. */
  readonly execArgv?: readonly string[];
  /** Where it looks for libraries before all other places; `$ORIGIN` is its own folder. */
  readonly runPath?: string;
};

/** Says where things lie; all absolute. */
export type BuildPlace = { readonly binDir: string; readonly cacheDir: string; readonly nodePath: string };

/**
 * Packages a bundle with pkg into one executable file. Does nothing when the last build was of the same bundle, Node and
 * options. Atomic: a file that is being executed is replaced, never written.
 *
 * Network is not used: the Node inside is npm's, and so is the one that makes the code cache.
 *
 * @returns whether anything was made.
 */
export async function makeExecutable(spec: ExecutableSpec, place: BuildPlace): Promise<'made' | 'unchanged'> {
  const { binDir, cacheDir, nodePath } = place;
  const output = join(binDir, spec.name);
  const stampPath = join(cacheDir, `${spec.name}.sha256`);
  const stamp = stampOf(spec, nodePath);
  const isComplete = [spec.name, ...spec.links].every((name) => existsSync(join(binDir, name)));
  if (isComplete && existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) return 'unchanged';
  await mkdir(binDir, { recursive: true });
  await mkdir(cacheDir, { recursive: true });
  await rm(stampPath, { force: true });
  const entry = join(cacheDir, `${spec.name}.cjs`);
  const made = join(cacheDir, spec.name);
  await writeFile(entry, spec.code);
  const assets = { ...(await writeAssets(spec, cacheDir)), ...(await writeScripts(spec, cacheDir)) };
  await package_(entry, made, [await strippedNode(place), JSON.stringify(assets), ...(spec.execArgv ?? [])]);
  await chmod(made, 0o755);
  // Last: pkg lays the file out again.
  if (spec.runPath !== undefined) setRunPath(made, spec.runPath);
  await rename(made, output);
  for (const name of spec.links) {
    const temporary = join(binDir, `.${name}.new`);
    await rm(temporary, { force: true });
    await link(output, temporary);
    await rename(temporary, join(binDir, name));
    // rename(2) does nothing between two names of one file, and leaves the first.
    await rm(temporary, { force: true });
  }
  await writeFile(stampPath, stamp);
  return 'made';
}

/** Writes the assets into files, and returns their paths by name. */
async function writeAssets({ name, assets = {} }: ExecutableSpec, cacheDir: string): Promise<Record<string, string>> {
  return await writeTexts(name, assets, cacheDir);
}

/** Writes the scripts and their code caches into files, and returns their paths by name. */
async function writeScripts({ name, scripts = {} }: ExecutableSpec, cacheDir: string): Promise<Record<string, string>> {
  const paths = await writeTexts(name, scripts, cacheDir);
  const caches = Object.fromEntries(
    Object.entries(paths).map(([script, path]) => [cacheNameOf(script), `${path}${cacheNameOf('')}`]),
  );
  const pairs = Object.entries(paths).flatMap(([script, path]) => [path, caches[cacheNameOf(script)] ?? '']);
  const maker = join(import.meta.dirname, 'make-code-cache.ts');
  if (pairs.length > 0) await run(process.execPath, [...GENERATOR_FLAGS, maker, ...pairs]);
  return { ...paths, ...caches };
}

async function writeTexts(
  name: string,
  texts: Readonly<Record<string, string>>,
  cacheDir: string,
): Promise<Record<string, string>> {
  const paths: Record<string, string> = {};
  for (const [asset, text] of Object.entries(texts)) {
    const bytes = Buffer.from(text, 'utf8');
    if (bytes.length !== text.length)
      throw new Error(`${asset}: has characters outside of ASCII; it is read as Latin-1`);
    const path = join(cacheDir, `${name}.${asset.replaceAll('/', '-')}.asset`);
    await writeFile(path, bytes);
    paths[asset] = path;
  }
  return paths;
}

async function package_(entry: string, output: string, nodeAndFlags: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, 'run-pkg.ts');
  try {
    await run(process.execPath, [script, entry, output, ...nodeAndFlags], { maxBuffer: OUTPUT_BYTES });
  } catch (cause) {
    const said = cause instanceof Error && 'stderr' in cause ? String(cause.stderr) : String(cause);
    // A syntax error quotes its line, and a bundle has few.
    const lines = said.split('\n').map((line) => line.slice(0, SHOWN_CHARS));
    throw new Error(`pkg failed on ${entry}:\n${lines.join('\n')}`, { cause });
  }
}

const run = promisify(execFile);
const OUTPUT_BYTES = 64 * 1024 * 1024;
const SHOWN_CHARS = 300;

/** Copies Node without its symbol table: 33 MB less to read on a cold start. Without `strip` it stays whole. */
async function strippedNode({ cacheDir, nodePath }: BuildPlace): Promise<string> {
  const stripped = join(cacheDir, `node-${process.version}-${process.arch}`);
  if (existsSync(stripped)) return stripped;
  const temporary = `${stripped}.${process.pid}.tmp`;
  await copyFile(nodePath, temporary);
  try {
    await run('strip', ['--strip-all', temporary]);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  await rename(temporary, stripped);
  return stripped;
}

function stampOf(spec: ExecutableSpec, nodePath: string): string {
  const { code, links, execArgv = [], runPath = '', assets = {}, scripts = {} } = spec;
  const hash = createHash('sha256');
  for (const part of [
    code,
    JSON.stringify(assets),
    JSON.stringify(scripts),
    links.join(),
    JSON.stringify(seaOptions(execArgv)),
    GENERATOR_FLAGS.join(),
    runPath,
    process.version,
    process.arch,
    nodePath,
  ]) {
    hash.update(part).update('\0');
  }
  return hash.digest('hex');
}
