import { readFileSync, statSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { tar, tarSize } from '../../runtime/tar.ts';
import { run } from '../../sim/support/run.ts';
import { createTempDir } from '../support/temp-dir.ts';

test('tar: the system tar unpacks files, folders and links as they were given', async (t) => {
  const dir = createTempDir('tar');
  try {
    const content = Buffer.alloc(700, 'x');
    writeFileSync(dir.join('source'), content);
    const archive = tar([
      { kind: 'folder', path: 'bin' },
      { kind: 'file', path: 'bin/tool', content, mode: 0o755 },
      { kind: 'copy', path: 'bin/copy', source: dir.join('source'), mode: 0o700 },
      { kind: 'symlink', path: 'bin/alias', target: 'tool' },
      { kind: 'link', path: 'bin/twin', target: 'bin/tool', mode: 0o755 },
      { kind: 'archive', path: 'inner.tar', entries: [{ kind: 'file', path: 'deep', content: Buffer.from('down') }] },
    ]);
    writeFileSync(dir.join('a.tar'), archive);
    await run(['tar', '-x', '-f', dir.join('a.tar'), '-C', dir.path]);
    t.deepEqual(readFileSync(dir.join('bin', 'alias')), content);
    t.deepEqual(readFileSync(dir.join('bin', 'copy')), content);
    t.regex(await run(['ls', '-l', dir.join('bin', 'tool')]), /^-rwxr-xr-x/);
    t.regex(await run(['ls', '-l', dir.join('bin', 'copy')]), /^-rwx------/);
    t.is(statSync(dir.join('bin', 'twin')).ino, statSync(dir.join('bin', 'tool')).ino);
    t.is(await run(['tar', '-x', '-O', '-f', dir.join('inner.tar'), 'deep']), 'down');
  } finally {
    dir.close();
  }
});

test('tarSize: counts what tar writes, whatever the sizes', (t) => {
  for (const size of [0, 1, 511, 512, 513, 5000]) {
    const entries = [{ kind: 'file', path: 'x', content: Buffer.alloc(size) }] as const;
    const nested = [...entries, { kind: 'archive', path: 'y', entries }] as const;
    t.is(tarSize(nested), tar(nested).length, `${size} bytes`);
  }
});

test('tar: sets the time that it is told, and root as the owner', async (t) => {
  const archive = tar([{ kind: 'file', path: 'x', content: Buffer.alloc(0) }], 1_700_000_000);
  const listing = await run(['tar', '-t', '-v', '--numeric-owner', '--utc', '-f', '-'], {
    input: archive.toString('latin1'),
  });
  t.regex(listing, /^-rw-r--r-- 0\/0 +0 2023-11-14 22:13 x$/m);
});

test('tar: refuses a name that ustar has no room for', (t) => {
  t.throws(() => tar([{ kind: 'folder', path: 'x'.repeat(100) }]), { message: /longer than the 100 bytes/ });
});
