/**
 * Takes AVA from where `bundleAva` put it. The process of each test file loads this first where BUNDLED_AVA_VARIABLE is
 * set (ava.config.js).
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BUNDLED_AVA_VARIABLE, bundledAvaFolder } from './bundled-ava.ts';

const folder = process.env[BUNDLED_AVA_VARIABLE];

if (folder !== undefined) {
  const urlOf = (file: string): string => pathToFileURL(join(bundledAvaFolder(folder), file)).href;
  const main = urlOf('main.js');
  const worker = urlOf('base.js');
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === 'ava') return { url: main, format: 'module', shortCircuit: true };
      if (specifier.endsWith('/ava/lib/worker/base.js')) return { url: worker, format: 'module', shortCircuit: true };
      return next(specifier, context);
    },
  });
  // AVA switches them on. Types are blanked out of our sources, so lines are right without; a stack costs more with.
  process.setSourceMapsEnabled(false);
  // What a test starts is no test.
  delete process.env[BUNDLED_AVA_VARIABLE];
}
