import { transform } from 'esbuild';

/** One program in several scripts: what it begins with, and those that it loads when they are needed. */
type SplitScripts = {
  /** CommonJS file that the program begins with. */
  readonly code: string;
  /** Texts of the other scripts, by the name of the asset that each has to become; ASCII only. */
  readonly scripts: Readonly<Record<string, string>>;
};

/**
 * Makes a program of the ES modules that esbuild split it into: the entry loads each of the others from an asset of the
 * executable, with V8's code cache from a second asset, when it is first imported. A start then costs the code that it runs.
 *
 * @param outputs texts by their path below the output folder, where imports name each other as `./PATH`
 * @param entry path of the module that the program begins with
 * @see https://nodejs.org/api/single-executable-applications.html#assets
 */
export async function splitScripts(outputs: ReadonlyMap<string, string>, entry: string): Promise<SplitScripts> {
  const scripts: Record<string, string> = {};
  let code: string | undefined;
  for (const [path, text] of [...outputs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const commonJs = escapeRest((await transform(text, OPTIONS)).code);
    if (path === entry) code = `${EAGER_HINT}${LOADER}((require)=>{${commonJs}\n})(loadScript);`;
    else scripts[path] = `${EAGER_HINT}(function(exports,require,module,__filename,__dirname){${commonJs}\n})`;
  }
  if (code === undefined) throw new Error(`esbuild made no ${entry}`);
  return { code, scripts };
}

/** Escapes what esbuild leaves: characters outside of ASCII in regular expressions. */
function escapeRest(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Names the asset with the code cache of a script. */
export function cacheNameOf(script: string): string {
  return `${script}${CACHE_SUFFIX}`;
}

/** Makes V8 compile every function at once. Must be the first thing in a file. @see https://v8.dev/blog/explicit-compile-hints */
export const EAGER_HINT = '//# allFunctionsCalledOnLoad\n';

const CACHE_SUFFIX = '.cache';

const OPTIONS = {
  format: 'cjs',
  platform: 'node',
  target: 'node26',
  minifyWhitespace: true,
  legalComments: 'none',
  // Assets are read as Latin-1.
  charset: 'ascii',
  // `import()` becomes `require` in a promise.
  supported: { 'dynamic-import': false },
} as const;

/**
 * Modules of Node that cost 1 to 10 ms each to load: their imports load them when something of them is first used. None of them
 * is a function. Packages on demand get them as they are.
 */
const LATE = ['child_process', 'crypto', 'dgram', 'http', 'http2', 'https', 'net', 'os', 'sqlite', 'tls'];

const LOADER = `
const loadedScripts = new Map();
const late = new Set(${JSON.stringify(LATE)});
function loadScript(id) {
  if (!id.startsWith('./')) return late.has(id.replace('node:', '')) ? loadLate(id) : require(id);
  const asset = id.slice(2);
  const known = loadedScripts.get(asset);
  if (known !== undefined) return known.exports;
  const made = { exports: {} };
  loadedScripts.set(asset, made);
  const { getRawAsset } = require('node:sea');
  const { constants, Script } = require('node:vm');
  new Script(Buffer.from(getRawAsset(asset)).latin1Slice(), {
    filename: asset,
    cachedData: Buffer.from(getRawAsset(asset + '${CACHE_SUFFIX}')),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext()(made.exports, loadScript, made, __filename, __dirname);
  return made.exports;
}
loadScript.native = require;
function loadLate(id) {
  return new Proxy({}, {
    get: (_, name) => require(id)[name],
    has: (_, name) => name in require(id),
    ownKeys: () => Reflect.ownKeys(require(id)),
    getOwnPropertyDescriptor: (_, name) => ({ value: require(id)[name], enumerable: true, configurable: true }),
  });
}
`;
