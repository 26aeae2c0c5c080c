import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { BUNDLED_PACKAGES, bundledAvaFolder, bundledPackageFile } from './bundled-ava.ts';

/** What a test file imports. */
const MAIN = fileURLToPath(import.meta.resolve('ava'));

/** What AVA runs in the process of a test file. */
const WORKER = join(MAIN, '..', '..', 'lib', 'worker', 'base.js');

/** The part of it that has nothing of one test file: a process that runs several loads it once. */
const RUNNER = join(MAIN, '..', '..', 'lib', 'runner.js');

/** What AVA loads for snapshots, for lines named on its command line and to find test files: half of it, and of no test. */
const UNUSED: Plugin = {
  name: 'unused',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:globby|cbor|acorn|acorn-walk)$/ }, ({ path }) => ({ path, namespace: 'unused' }));
    // A second file would configure it once more, which AVA forbids.
    onLoad({ filter: /\/ava\/lib\/chalk\.js$/ }, () => ({
      contents: "import { Chalk } from 'chalk'; export const chalk = new Chalk({ level: 0 }); export function set() {}",
      resolveDir: import.meta.dirname,
    }));
    onLoad({ filter: /./, namespace: 'unused' }, () => ({ contents: 'module.exports = {}' }));
  },
};

/**
 * Writes `main.js`, what a test file imports of AVA, and `base.js`, what AVA runs in its process, with all that they load.
 * Read from its 400 own files, AVA takes half of the processor time of a small test file. Writes BUNDLED_PACKAGES too.
 * Takes a second.
 */
export async function bundleAva(folder: string): Promise<void> {
  await build({
    entryPoints: { main: MAIN, base: WORKER, runner: RUNNER },
    outdir: bundledAvaFolder(folder),
    bundle: true,
    // Both have one state: `test` of the first registers tests with the second.
    splitting: true,
    format: 'esm',
    platform: 'node',
    minifyWhitespace: true,
    plugins: [UNUSED],
    // CommonJS packages among them ask for Node's own modules.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    logLevel: 'error',
  });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  await Promise.all(BUNDLED_PACKAGES.map((name) => bundlePackage(folder, name)));
}

async function bundlePackage(folder: string, name: string): Promise<void> {
  const exported = Object.keys(await import(name)).filter((key) => key !== 'default' && key !== 'module.exports');
  await build({
    stdin: { contents: `module.exports = require('${name}')`, resolveDir: import.meta.dirname },
    outfile: bundledPackageFile(folder, name),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    minifyWhitespace: true,
    // Never run: from it Node learns what a CommonJS file exports by name.
    footer: { js: `0 && (module.exports = { ${exported.join(', ')} });` },
    logLevel: 'error',
  });
}
