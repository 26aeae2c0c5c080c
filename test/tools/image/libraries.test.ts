import { realpathSync } from 'node:fs';
import test from 'ava';
import { run } from '../../../sim/support/run.ts';
import { readElf } from '../../../tools/image/elf.ts';
import { findLibraries } from '../../../tools/image/libraries.ts';

/** What the loader itself says that a program loads: real files. */
async function loadedBy(program: string): Promise<readonly string[]> {
  const lines = (await run(['ldd', program])).split('\n');
  const paths = lines.flatMap((line) => /(?:=> |^\s+)(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  return [...new Set(paths.map((path) => realpathSync(path)))].sort();
}

const agrees = test.macro(async (t, program: string) => {
  const found = findLibraries([program]).map(({ source }) => source);
  t.deepEqual([...new Set(found)].sort(), await loadedBy(program));
});
test('findLibraries: finds what ldd finds for Node', agrees, process.execPath);
test('findLibraries: finds what ldd finds for bash', agrees, '/usr/bin/bash');
test('findLibraries: finds what ldd finds for tar', agrees, '/usr/bin/tar');

test('findLibraries: places everything below /usr, under the name that is asked for, the loader once', (t) => {
  const libraries = findLibraries([process.execPath]);
  const names = libraries.map(({ path }) => path);
  t.deepEqual(
    names.filter((path) => !path.startsWith('/usr/lib')),
    [],
  );
  t.true(
    names.some((path) => path.endsWith('/libstdc++.so.6')),
    names.join(' '),
  );
  t.is(libraries.filter(({ isLoader }) => isLoader).length, 1);
  t.is(names.filter((path) => /ld-linux/.test(path)).length, 1);
});

test('findLibraries: names every library that is not there, and who needs it', (t) => {
  const error = t.throws(() => findLibraries([process.execPath], '/proc/self/fdinfo'));
  t.regex(error.message, /libstdc\+\+\.so\.6, needed by .*node/);
  t.regex(error.message, /ld-linux.*, loader of .*node/);
});

test('readElf: says that a script is no ELF file', (t) => {
  t.is(readElf(import.meta.filename), undefined);
});
