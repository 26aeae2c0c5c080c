import { createRequire } from 'node:module';
import { join } from 'node:path';
import { constants, Script } from 'node:vm';
import test from 'ava';
import { bundle } from '../../../tools/build/bundle.ts';
import { EXECUTABLES } from '../../../tools/build.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PACKAGES = EXECUTABLES['tke-eni'].onDemand;

test('packagesOnDemand: keeps the packages out of the bundle, and each asset has what is imported of it', async (t) => {
  const { code, assets } = await bundle(ROOT, 'cli/main.ts', 'test', 'eager', PACKAGES);
  const whole = await bundle(ROOT, 'cli/main.ts', 'test', 'eager');
  t.deepEqual(whole.assets, {});
  t.true(code.length * 2 < whole.code.length, `${code.length} of ${whole.code.length} bytes`);
  t.true(Object.keys(assets).length > 0);
  for (const [name, text] of Object.entries(assets)) {
    t.true(code.includes(`getRawAsset("${name}")`), name);
    // As the executable loads it: as a script, with no more than Node's own modules.
    const require = createRequire(join(ROOT, 'dist', 'nothing.cjs'));
    const made = { exports: {} as Readonly<Record<string, () => object>> };
    const script = new Script(`(function(exports,require,module,__filename){${text}\n})`, {
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    script.runInThisContext()(
      made.exports,
      (id: string) => require(`node:${id.replace(/^node:/, '')}`),
      made,
      '/x.cjs',
    );
    const paths = Object.keys(made.exports);
    t.true(paths.length > 0 && paths.every((path) => path === name || path.startsWith(`${name}/`)), paths.join());
    for (const path of paths) t.true(Object.keys(made.exports[path]?.() ?? {}).length > 0, path);
  }
});
