import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, parse, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Metafile, type OutputFile, type Plugin } from 'esbuild';
import { leanYargs } from './lean-yargs.ts';
import { ON_DEMAND_PREFIX, packagesOnDemand } from './packages-on-demand.ts';
import { EAGER_HINT, splitScripts } from './split-scripts.ts';

/** Is one CommonJS file with everything in it, and what it needs beside it. */
type Bundle = {
  readonly code: string;
  /** Source files in it, relative to the root, packages of others left out. */
  readonly sources: readonly string[];
  /** Reports whether ffi-rs is in it, so that its addon must lie beside the executable. */
  readonly needsFfi: boolean;
  /** Packages that it loads when they are needed, as CommonJS, by the name of the asset that each has to become. */
  readonly assets: Readonly<Record<string, string>>;
  /** Parts of it that it loads when they are needed, likewise by the name of their asset; each wants a code cache. */
  readonly scripts: Readonly<Record<string, string>>;
};

/**
 * Says when V8 compiles a function. 'eager': while packaging, so that the code cache holds all of them; 2 ms of 30 for a
 * process that lives as long. 'split': so too, but what lies behind `import()` is loaded when it is imported, for a program
 * that runs a small part of itself. 'lazy': on first call, for a daemon that carries more than it uses.
 */
export type Compile = 'eager' | 'split' | 'lazy';

/**
 * Bundles an entry and all that it imports into one CommonJS file for a single executable.
 *
 * @param root the folder that `entry` is relative to.
 * @param release what the bundle says that it is.
 * @param onDemand packages that become assets instead of parts of the bundle.
 * @throws when the entry does not bundle, ffi-rs changed so much that its loader is not found, or a split program imports a
 * package by `import()`.
 */
export async function bundle(
  root: string,
  entry: string,
  release: string,
  compile: Compile,
  onDemand: readonly string[] = [],
): Promise<Bundle> {
  const packages = packagesOnDemand(onDemand);
  const isSplit = compile === 'split';
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    ...(isSplit ? ({ format: 'esm', splitting: true, outdir: OUTPUTS } as const) : { format: 'cjs' }),
    target: 'node26',
    // Whitespace and dead branches only: names stay readable in the stack of a code 999.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'error',
    define: {
      TKE_ENI_RELEASE: JSON.stringify(release),
      'import.meta.url': MODULE_URL,
      'import.meta.dirname': '__dirname',
      'import.meta.filename': '__filename',
    },
    plugins: [ffiBesideExecutable, leanYargs, inlineModules, packages.plugin],
  });
  if (isSplit) requireNamedExports(metafile.inputs);
  const split = isSplit ? await splitScripts(outputsOf(outputFiles), entryOf(entry)) : undefined;
  const bundled = split?.code ?? outputFiles[0]?.text;
  if (bundled === undefined) throw new Error(`${entry}: esbuild made no file`);
  const header = compile === 'eager' ? EAGER_HINT : '';
  const code = bundled.includes(MODULE_URL) ? `${header}${DEFINE_MODULE_URL}${bundled}` : `${header}${bundled}`;
  const inputs = Object.keys(metafile.inputs);
  return {
    code,
    sources: sourcesOf(root, inputs),
    needsFfi: inputs.some((path) => FFI_LOADER.test(path)),
    assets: await packages.bundlePackages(root),
    scripts: split?.scripts ?? {},
  };
}

/** Folder of esbuild's outputs, which are not written. */
const OUTPUTS = '/outputs';

function outputsOf(files: readonly OutputFile[]): ReadonlyMap<string, string> {
  return new Map(files.map(({ path, text }) => [relative(OUTPUTS, path), text]));
}

function entryOf(entry: string): string {
  return `${parse(entry).name}.js`;
}

/**
 * Refuses `import('package')` in a split program: of a package in CommonJS esbuild keeps only `default` there, and names are
 * undefined at run time. @throws Error that names each such import
 */
function requireNamedExports(inputs: Metafile['inputs']): void {
  const found = Object.entries(inputs)
    .filter(([path]) => !path.includes('node_modules/'))
    .flatMap(([path, { imports }]) =>
      imports.filter(isPackageOnItsOwn).map(({ original }) => `${path}: import('${original}')`),
    );
  if (found.length === 0) return;
  const cure =
    'import a file of our own there, which imports the package by a statement, as cli/output/render-yaml.ts does';
  throw new Error(`${found.join(', ')}: a split program gets no named exports of a package this way: ${cure}`);
}

function isPackageOnItsOwn({ kind, path, external }: Metafile['inputs'][string]['imports'][number]): boolean {
  const isPackage = path.includes('node_modules/') || path.startsWith(ON_DEMAND_PREFIX);
  return kind === 'dynamic-import' && external !== true && isPackage;
}

/** What an inlined module reads lies beside it, and is a source as much as the module. */
function sourcesOf(root: string, inputs: readonly string[]): readonly string[] {
  const own = inputs.filter((path) => !path.includes('node_modules/'));
  const read = own
    .filter((path) => INLINE_MODULE.test(path))
    .flatMap((path) => readdirSync(join(root, dirname(path))).map((name) => join(dirname(path), name)));
  return [...new Set([...own, ...read])].sort();
}

/** Stands for import.meta.url, which a CommonJS file has not. */
const MODULE_URL = '__tke_module_url';
const DEFINE_MODULE_URL = `const ${MODULE_URL}=require('node:url').pathToFileURL(__filename).href;\n`;

const INLINE_MODULE = /\.inline\.ts$/;

const FFI_LOADER = /node_modules\/ffi-rs\/index\.js$/;

/** Begins the part of ffi-rs's entry that comes after its search for the addon. */
const AFTER_LOADER = 'const { DataType, createPointer,';

/**
 * Replaces ffi-rs's search for its addon by the one place where the build puts it. The search costs 4-6 ms, for it asks
 * for a diagnostic report to tell musl from glibc, and it looks for packages, which a single file has not.
 */
const ffiBesideExecutable: Plugin = {
  name: 'ffi-beside-executable',
  setup: ({ onLoad }) => {
    onLoad({ filter: FFI_LOADER }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const at = source.indexOf(AFTER_LOADER);
      if (at < 0 || source.indexOf(AFTER_LOADER, at + 1) >= 0) {
        throw new Error(`${path}: no single "${AFTER_LOADER}"; ffi-rs changed: see where its loader ends now`);
      }
      const loader = `
        const loaded = { exports: {} };
        process.dlopen(loaded, require('node:path').join(__dirname, '${FFI_FILE}'));
        const nativeBinding = loaded.exports;`;
      return { contents: `${loader}\n${source.slice(at)}`, loader: 'js' };
    });
  },
};

/**
 * Runs modules named `….inline.ts` while bundling and puts what they export, which must be plain data, in their place: files
 * that they read from beside them are not beside an executable.
 */
const inlineModules: Plugin = {
  name: 'inline-modules',
  setup: ({ onLoad }) => {
    onLoad({ filter: INLINE_MODULE }, async ({ path }) => {
      const values: unknown = await import(pathToFileURL(path).href);
      const lines = Object.entries(Object(values)).map(
        ([name, value]) => `export const ${name} = ${JSON.stringify(value)};`,
      );
      return { contents: lines.join('\n'), loader: 'js' };
    });
  },
};

/** Is the addon's name beside the executable. */
export const FFI_FILE = 'ffi-rs.node';
