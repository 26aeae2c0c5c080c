import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { setRunPath } from '../../../tools/build/run-path.ts';
import { findLibraries } from '../../../tools/image/libraries.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

/** A small program that needs more than the C library. */
const PROGRAM = '/usr/sbin/conntrack';
const LIBRARY = 'libmnl.so.0';

function folder(t: { teardown(run: () => void): void }): TempDir {
  const dir = createTempDir('run-path');
  t.teardown(() => dir.close());
  copyFileSync(PROGRAM, dir.join('program'));
  return dir;
}

test('setRunPath: the loader takes libraries from there, all else stays in its place', (t) => {
  const dir = folder(t);
  const source = findLibraries([PROGRAM]).find(({ path }) => path.endsWith(LIBRARY))?.source ?? '';
  mkdirSync(dir.join('beside'));
  copyFileSync(source, dir.join('beside', LIBRARY));
  setRunPath(dir.join('program'), '$ORIGIN/beside');

  const said = execFileSync('ldd', [dir.join('program')], { encoding: 'utf8' });
  t.true(said.includes(`${LIBRARY} => ${dir.join('beside', LIBRARY)} `), said);
  t.regex(execFileSync(dir.join('program'), ['--version'], { encoding: 'utf8' }), /^conntrack v/);

  const [before, after] = [readFileSync(PROGRAM), readFileSync(dir.join('program'))];
  t.is(after.length, before.length);
  // The text, four numbers and one entry.
  t.true(after.filter((byte, at) => byte !== before[at]).length < 64);
});

test('setRunPath: leaves a file that has the path, and refuses one that has another', (t) => {
  const dir = folder(t);
  setRunPath(dir.join('program'), '$ORIGIN/beside');
  const once = readFileSync(dir.join('program'));
  setRunPath(dir.join('program'), '$ORIGIN/beside');
  t.throws(() => setRunPath(dir.join('program'), '$ORIGIN/other'), { message: /another run path/ });
  t.deepEqual(readFileSync(dir.join('program')), once);
});

test('setRunPath: refuses what does not fit and what is no executable, and leaves it as it is', (t) => {
  const dir = folder(t);
  t.throws(() => setRunPath(dir.join('program'), `/${'x'.repeat(4096)}`), { message: /no room/ });
  t.deepEqual(readFileSync(dir.join('program')), readFileSync(PROGRAM));
  writeFileSync(dir.join('script'), '#!/bin/sh\n');
  t.throws(() => setRunPath(dir.join('script'), '/x'), { message: /no 64-bit little-endian ELF file/ });
});
