import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';

test('writeFileAtomically: replaces content and sets the mode', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tke-test-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'conf');
  writeFileAtomically(path, 'old');
  writeFileAtomically(path, 'new', 0o600);
  t.is(readFileSync(path, 'utf8'), 'new');
  t.is(statSync(path).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(folder), ['conf']);
});

test('writeFileAtomically: leaves nothing behind when it fails', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tke-test-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'taken'));
  t.throws(() => writeFileAtomically(join(folder, 'taken'), 'x'), { code: 'EISDIR' });
  t.deepEqual(readdirSync(folder), ['taken']);
});
