import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { findLibraries } from '../../../tools/image/libraries.ts';

const DOCKERFILE = join(import.meta.dirname, '../../../conf/images/Dockerfile');
/** In every Debian system, for apt is linked with them. */
const OF_BASE = ['libc6', 'libgcc-s1', 'libstdc++6'];

test('Dockerfile: installs the libraries that Node itself needs, before it runs Node', (t) => {
  const [, list = ''] =
    /apt-get install -y --no-install-recommends \\\n([^&]*)\\\n/.exec(readFileSync(DOCKERFILE, 'utf8')) ?? [];
  const installed = list.split(/[\s\\]+/).filter((word) => word !== '');
  const needed = findLibraries([process.execPath]).map(({ source }) => packageOf(source));
  t.true(needed.includes('libc6'));
  t.deepEqual(
    [...new Set(needed)].filter((name) => !OF_BASE.includes(name) && !installed.includes(name)),
    [],
  );
});

/** `libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6` */
function packageOf(path: string): string {
  const names = [path, path.replace(/^\/usr\/lib/, '/lib')].flatMap((name) => {
    try {
      return execFileSync('dpkg-query', ['-S', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    } catch {
      // The package may name it with or without /usr.
      return [];
    }
  });
  return names[0]?.split(':')[0] ?? realpathSync(path);
}
