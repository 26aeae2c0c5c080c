import { readFile } from 'node:fs/promises';
import type { Plugin } from 'esbuild';

/**
 * Leaves of yargs what its parser needs. Its platform module brings string-width, cliui, locale files that a single file
 * has not, and touches process.stdout; the parser's own entry wants node:module: 35 ms of CPU time for nothing of ours.
 */
export const leanYargs: Plugin = {
  name: 'lean-yargs',
  setup: ({ onLoad }) => {
    // `yargs/helpers` needs it for applyExtends alone.
    onLoad({ filter: /node_modules\/yargs\/lib\/platform-shims\/esm\.mjs$/ }, () => ({
      contents: 'export default {};',
      loader: 'js',
    }));
    onLoad({ filter: /node_modules\/yargs-parser\/build\/lib\/index\.js$/ }, async ({ path }) => {
      const original = await readFile(path, 'utf8');
      const missing = EXPECTED.filter((text) => !original.includes(text));
      if (missing.length > 0) {
        throw new Error(`${path}: has no ${missing.join(' and no ')}; yargs-parser changed: see what it asks for now`);
      }
      return { contents: PARSER, loader: 'js' };
    });
  },
};

/** Shows that the entry is the one that is replaced here. */
const EXPECTED = ["import { YargsParser } from './yargs-parser.js'", 'parser.parse(args.slice(), opts)'];

const PARSER = `
import { YargsParser } from './yargs-parser.js';
import { format } from 'node:util';
import { normalize, resolve } from 'node:path';
const parser = new YargsParser({
  cwd: () => process.cwd(),
  env: () => ({}),
  format,
  normalize,
  resolve,
  require: () => { throw new Error('configuration files of yargs are left out of this executable'); },
});
export default (args, opts) => parser.parse(args.slice(), opts).argv;
`;
