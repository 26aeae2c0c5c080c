import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ensureFolder, reclaimFolder } from '../../runtime/folder.ts';

function makePlace(t: ExecutionContext): string {
  const place = mkdtempSync(join(tmpdir(), 'tke-test-'));
  t.teardown(() => rmSync(place, { recursive: true }));
  return place;
}

test('ensureFolder: makes all that is missing with the mode, and may be called again', (t) => {
  const place = makePlace(t);
  const path = join(place, 'a', 'b');
  ensureFolder(path, 0o700);
  ensureFolder(path, 0o700);
  t.is(statSync(path).mode & 0o777, 0o700);
  t.is(statSync(join(place, 'a')).mode & 0o777, 0o700);
});

test('ensureFolder: fails where a folder takes no children, rather than try forever', (t) => {
  t.throws(() => ensureFolder('/proc/tke-test/a', 0o700), { code: 'ENOENT' });
});

test('ensureFolder: says what is in the way', (t) => {
  const file = join(makePlace(t), 'file');
  writeFileSync(file, '');
  t.throws(() => ensureFolder(file), { code: 'EEXIST' });
  t.throws(() => ensureFolder(join(file, 'below')), { code: 'ENOTDIR' });
});

const STRANGERS: readonly (readonly [string, (path: string) => void])[] = [
  ['a file', (path) => writeFileSync(path, 'theirs')],
  ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ['a link that leads nowhere', (path) => symlinkSync('/none', path)],
  ['a link to itself', (path) => symlinkSync(path, path)],
  ['a link to a file', (path) => symlinkSync('/etc/hostname', path)],
];

for (const [what, put] of STRANGERS) {
  test(`reclaimFolder: moves ${what} aside, each time`, (t) => {
    const place = makePlace(t);
    const path = join(place, 'own');
    for (const number of [1, 2]) {
      put(path);
      t.is(reclaimFolder(path, 0o700), `${path}.aside-${number}`);
      t.is(reclaimFolder(path, 0o700), undefined);
      rmSync(path, { recursive: true });
    }
    t.deepEqual(readdirSync(place).sort(), ['own.aside-1', 'own.aside-2']);
  });
}

test('reclaimFolder: keeps a folder with what is in it, or a link to one, and gives it its mode', (t) => {
  const place = makePlace(t);
  const path = join(place, 'own');
  mkdirSync(join(path, 'in'), { recursive: true, mode: 0o777 });
  t.is(reclaimFolder(path, 0o700), undefined);
  t.is(statSync(path).mode & 0o777, 0o700);
  symlinkSync(path, join(place, 'link'));
  t.is(reclaimFolder(join(place, 'link'), 0o700), undefined);
  t.deepEqual(readdirSync(path), ['in']);
});
