import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { createTempDir } from '../support/temp-dir.ts';

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
  t.throws(() => writeFileAtomically(join(folder, 'x'.repeat(250)), 'x'), { code: 'ENAMETOOLONG' });
  t.throws(() => writeFileAtomically(join(folder, 'none', 'x'), 'x'), { code: 'ENOENT' });
  t.deepEqual(readdirSync(folder), []);
});

test('writeFileAtomically: moves a folder in its place aside', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tke-test-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'taken', 'in'), { recursive: true });
  writeFileAtomically(join(folder, 'taken'), 'x');
  t.is(readFileSync(join(folder, 'taken'), 'utf8'), 'x');
  t.deepEqual(readdirSync(folder).sort(), ['taken', 'taken.aside-1']);
});

test('writeFileAtomically: waits for no FIFO, and follows no link, in the place of its temporary file', (t) => {
  const dir = createTempDir('atomic');
  t.teardown(dir.close);
  const temporary = `${dir.join('f')}.${process.pid}.tmp`;
  writeFileSync(dir.join('other'), 'of others');
  for (const make of [() => execFileSync('mkfifo', [temporary]), () => symlinkSync(dir.join('other'), temporary)]) {
    make();
    writeFileAtomically(dir.join('f'), 'new');
    t.is(readFileSync(dir.join('f'), 'utf8'), 'new');
  }
  t.is(readFileSync(dir.join('other'), 'utf8'), 'of others');
});
