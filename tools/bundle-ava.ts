import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundledAvaFolder } from './bundled-ava.ts';

/** What a test file imports. */
const MAIN = fileURLToPath(import.meta.resolve('ava'));

/** What AVA runs in the process of a test file. */
const WORKER = join(MAIN, '..', '..', 'lib', 'worker', 'base.js');

/**
 * Writes `main.js`, what a test file imports of AVA, and `base.js`, what AVA runs in its process, with all that they load.
 * Read from its 400 own files, AVA takes half of the processor time of a small test file. Takes a second.
 */
export async function bundleAva(folder: string): Promise<void> {
  await build({
    entryPoints: { main: MAIN, base: WORKER },
    outdir: bundledAvaFolder(folder),
    bundle: true,
    // Both have one state: `test` of the first registers tests with the second.
    splitting: true,
    format: 'esm',
    platform: 'node',
    minifyWhitespace: true,
    // CommonJS packages among them ask for Node's own modules.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    logLevel: 'error',
  });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
}
