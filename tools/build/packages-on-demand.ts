import { build, type Plugin } from 'esbuild';

/** Packages that are kept out of a bundle, and what became of them. */
type PackagesOnDemand = {
  readonly plugin: Plugin;
  /** Bundles each package that the bundle imports, by the name that it is imported by. Call it after the bundle is made. */
  bundlePackages(root: string): Promise<Readonly<Record<string, string>>>;
};

/**
 * Keeps big packages out of a bundle: our own imports of them load an asset of the executable, when the importing module
 * is first run. For programs that start often and need them seldom: each megabyte of code costs 5 ms at every start, run or
 * not.
 *
 * @param names of packages; all that is imported of one, from whichever path below it, is one asset, so that each class is
 * there once.
 * @see https://nodejs.org/api/single-executable-applications.html#assets
 */
export function packagesOnDemand(names: readonly string[]): PackagesOnDemand {
  const found = new Map<string, Set<string>>();
  const packageOf = (path: string) => names.find((name) => path === name || path.startsWith(`${name}/`));
  const plugin: Plugin = {
    name: 'packages-on-demand',
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^[@a-z]/ }, ({ path, importer }) => {
        const name = packageOf(path);
        // What packages import of each other goes along with them.
        if (name === undefined || importer.includes('/node_modules/')) return undefined;
        found.set(name, (found.get(name) ?? new Set()).add(path));
        return { path, namespace: IMPORTED };
      });
      onResolve({ filter: /^asset:/ }, ({ path }) => ({ path: path.slice('asset:'.length), namespace: ASSET }));
      onLoad({ filter: /./, namespace: IMPORTED }, ({ path }) => ({
        contents: `module.exports = require('asset:${packageOf(path)}')['${path}']();`,
        loader: 'js',
      }));
      onLoad({ filter: /./, namespace: ASSET }, ({ path }) => ({ contents: loaderOf(path), loader: 'js' }));
    },
  };
  const bundlePackages = async (root: string) => {
    const packages = [...found].sort(([a], [b]) => (a < b ? -1 : 1));
    const made = packages.map(async ([name, paths]) => [name, await bundlePackage(root, [...paths].sort())] as const);
    return Object.fromEntries(await Promise.all(made));
  };
  return { plugin, bundlePackages };
}

const IMPORTED = 'on-demand';
/** What paths of such packages begin with in esbuild's report. */
export const ON_DEMAND_PREFIX = `${IMPORTED}:`;
const ASSET = 'asset';

async function bundlePackage(root: string, paths: readonly string[]): Promise<string> {
  const members = paths.map((path) => `'${path}': () => require('${path}')`);
  const { outputFiles } = await build({
    stdin: { contents: `module.exports = { ${members.join(', ')} };`, resolveDir: root },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'error',
    charset: 'ascii',
    define: { 'import.meta.url': MODULE_URL },
  });
  const code = outputFiles[0]?.text;
  if (code === undefined) throw new Error(`${paths.join(', ')}: esbuild made no file`);
  return `const ${MODULE_URL}=require('node:url').pathToFileURL(__filename).href;${code}`;
}

const MODULE_URL = '__tke_module_url';

function loaderOf(name: string): string {
  return `
const { getRawAsset } = require('node:sea');
const { constants, Script } = require('node:vm');
const code = Buffer.from(getRawAsset('${name}')).latin1Slice();
const made = { exports: {} };
new Script('(function(exports,require,module,__filename,__dirname){' + code + '\\n})', {
  filename: '${name}',
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
}).runInThisContext()(made.exports, require.native ?? require, made, __filename, __dirname);
module.exports = made.exports;
`;
}
