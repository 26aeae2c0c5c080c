import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { runInThisContext } from 'node:vm';
import test from 'ava';
import { bundle } from '../../../tools/build/bundle.ts';
import { splitScripts } from '../../../tools/build/split-scripts.ts';
import { EXECUTABLES } from '../../../tools/build.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Runs a program as the executable does, with scripts for assets; V8 rejects the empty code caches and compiles. */
function runProgram(code: string, scripts: Readonly<Record<string, string>>, loaded: string[]): Promise<unknown> {
  const native = createRequire(join(ROOT, 'dist', 'nothing.cjs'));
  const sea = {
    getRawAsset: (name: string) => {
      if (name.endsWith('.cache')) return new ArrayBuffer(0);
      loaded.push(name);
      return new TextEncoder().encode(scripts[name]).buffer;
    },
  };
  const require = (id: string) => (id === 'node:sea' ? sea : native(id));
  const program = runInThisContext(`(function(require,__filename,__dirname){${code}\nreturn globalThis.__answer;})`);
  return program(require, '/x.cjs', '/');
}

test.serial(
  'splitScripts: loads a part when it is imported, once, and what it shares with others is one',
  async (t) => {
    const outputs = new Map([
      [
        'main.js',
        'import {count} from "./shared.js"; globalThis.__answer = import("./late.js").then((late) => [late.next(), late.next(), count(), late.mark]);',
      ],
      ['shared.js', 'let n = 0; const count = () => ++n; export {count};'],
      [
        'late.js',
        'import {count} from "./shared.js"; import {isIP} from "node:net"; const next = () => count() + isIP("::1"); const mark = /[─│]/.source; export {next, mark};',
      ],
    ]);
    const { code, scripts } = await splitScripts(outputs, 'main.js');
    t.deepEqual(Object.keys(scripts).sort(), ['late.js', 'shared.js']);
    t.true(
      [code, ...Object.values(scripts)].every((text) => /^[\0-\x7f]*$/.test(text)),
      'assets are ASCII',
    );
    const loaded: string[] = [];
    const answer = runProgram(code, scripts, loaded);
    t.deepEqual(loaded, ['shared.js'], 'what is behind import() is not loaded at the start');
    t.deepEqual(await answer, [7, 8, 3, '[\\u2500\\u2502]']);
    t.deepEqual(loaded, ['shared.js', 'late.js']);
  },
);

test('bundle: tke-eni begins with a small part of itself', async (t) => {
  const { entry, compile, onDemand } = EXECUTABLES['tke-eni'];
  const { code, scripts } = await bundle(ROOT, entry, 'test', compile, onDemand);
  const all = Object.values(scripts).reduce((sum, text) => sum + text.length, code.length);
  t.true(code.length * 10 < all, `${code.length} of ${all} characters`);
});

test('bundle: refuses import() of a package in a split program, whose named exports would be lost', async (t) => {
  const dir = createTempDir('split');
  t.teardown(dir.close);
  mkdirSync(dir.join('node_modules/plain'), { recursive: true });
  writeFileSync(dir.join('node_modules/plain/index.js'), 'exports.twice = (n) => 2 * n;');
  writeFileSync(dir.join('late.ts'), "import { twice } from 'plain'; export const four = twice(2);");
  writeFileSync(dir.join('well.ts'), "export const four = async () => (await import('./late.ts')).four;");
  writeFileSync(dir.join('wrong.ts'), "export const four = async () => (await import('plain')).twice(2);");
  await t.notThrowsAsync(bundle(dir.path, 'well.ts', 'test', 'split'));
  await t.notThrowsAsync(bundle(dir.path, 'wrong.ts', 'test', 'eager'), 'one file has them');
  for (const onDemand of [[], ['plain']]) {
    await t.throwsAsync(bundle(dir.path, 'wrong.ts', 'test', 'split', onDemand), {
      message: /^wrong\.ts: import\('plain'\): .* no named exports .* as cli\/output\/render-yaml\.ts does$/,
    });
  }
});
