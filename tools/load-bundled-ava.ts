/**
 * Takes AVA and some packages from where `bundleAva` put them, and our own sources from where an import names them. The
 * process of each test file loads this first where BUNDLED_AVA_VARIABLE is set (ava.config.js).
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  BUNDLED_AVA_VARIABLE,
  BUNDLED_PACKAGES,
  bundledAvaFolder,
  bundledPackageFile,
  SHARED_VARIABLE,
} from './bundled-ava.ts';

const folder = process.env[BUNDLED_AVA_VARIABLE];

/** URLs of AVA, loaded again for each file of a process; undefined where a process runs one file. */
export const sharedAva =
  folder === undefined || process.env[SHARED_VARIABLE] === undefined
    ? undefined
    : { main: urlOf(folder, 'main.js'), worker: urlOf(folder, 'base.js') };

/** Start of the URLs of our sources, and of packages: those may import a bundled one, but no TypeScript. */
const ROOT = new URL('../', import.meta.url).href;

if (folder !== undefined) {
  const main = sharedAva === undefined ? urlOf(folder, 'main.js') : new URL('current-test.ts', import.meta.url).href;
  const worker = urlOf(folder, 'base.js');
  const packages = new Map(
    BUNDLED_PACKAGES.map((name) => [name, pathToFileURL(bundledPackageFile(folder, name)).href] as const),
  );
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'ava')
        return { url: main, format: sharedAva ? 'module-typescript' : 'module', shortCircuit: true };
      if (specifier.endsWith('/ava/lib/worker/base.js')) return { url: worker, format: 'module', shortCircuit: true };
      const isImport = context.parentURL?.startsWith(ROOT) === true && context.conditions.includes('import');
      const bundled = isImport ? packages.get(specifier) : undefined;
      if (bundled !== undefined) return { url: bundled, format: 'commonjs', shortCircuit: true };
      // Node looks whether the file is there, what it links to and which package it is of: a third of the time of an import.
      if (isImport && specifier.startsWith('.') && specifier.endsWith('.ts')) {
        return { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true };
      }
      return next(specifier, context);
    },
  });
  // AVA switches them on. Types are blanked out of our sources, so lines are right without; a stack costs more with.
  process.setSourceMapsEnabled(false);
  // What a test starts is no test.
  delete process.env[BUNDLED_AVA_VARIABLE];
  delete process.env[SHARED_VARIABLE];
}

function urlOf(folder: string, file: string): string {
  return pathToFileURL(join(bundledAvaFolder(folder), file)).href;
}
