import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ensureFolder } from '../../runtime/folder.ts';

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

test('ensureFolder: fails where a folder takes no children, rather than try for ever', (t) => {
  t.throws(() => ensureFolder('/proc/tke-test/a', 0o700), { code: 'ENOENT' });
});

test('ensureFolder: says what is in the way', (t) => {
  const file = join(makePlace(t), 'file');
  writeFileSync(file, '');
  t.throws(() => ensureFolder(file), { code: 'EEXIST' });
  t.throws(() => ensureFolder(join(file, 'below')), { code: 'ENOTDIR' });
});
