import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import test from 'ava';
import { FileError, readRegularFile, readRegularText } from '../../runtime/read-regular-file.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** Whether reading it waits, or never ends, where nobody looks before. */
const REFUSED: Readonly<Record<string, readonly [make: (path: string) => void, message: RegExp]>> = {
  'a FIFO': [(path) => execFileSync('mkfifo', [path]), /is a FIFO, not a regular file$/],
  'a link to a FIFO': [
    (path) => {
      execFileSync('mkfifo', [`${path}-fifo`]);
      symlinkSync(`${path}-fifo`, path);
    },
    /is a FIFO, not a regular file$/,
  ],
  'a link to a device without an end': [(path) => symlinkSync('/dev/zero', path), /is a device, not a regular file$/],
  'a folder': [(path) => mkdirSync(path), /is a folder, not a regular file$/],
  'a file above the limit': [(path) => writeFileSync(path, 'x'.repeat(1001)), /has more than 1000 bytes$/],
  'a file without a size above the limit': [
    (path) => symlinkSync('/proc/self/smaps', path),
    /has more than 1000 bytes$/,
  ],
};

for (const [what, [make, message]] of Object.entries(REFUSED)) {
  test(`readRegularFile: refuses ${what} at once`, (t) => {
    const dir = createTempDir('file');
    t.teardown(dir.close);
    make(dir.join('f'));
    const error = t.throws(() => readRegularFile(dir.join('f'), 1000), { instanceOf: FileError, message });
    t.is(error?.path, dir.join('f'));
  });
}

test('readRegularFile: refuses a socket', async (t) => {
  const dir = createTempDir('file');
  t.teardown(dir.close);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(dir.join('s'), resolve));
  t.teardown(() => server.close());
  t.throws(() => readRegularFile(dir.join('s'), 1000), { instanceOf: FileError, message: /is a socket/ });
});

test('readRegularFile: passes the errors of the file system on', (t) => {
  const dir = createTempDir('file');
  t.teardown(dir.close);
  symlinkSync('self', dir.join('self'));
  symlinkSync('nowhere', dir.join('dangling'));
  t.throws(() => readRegularFile(dir.join('self'), 1000), { code: 'ELOOP' });
  t.throws(() => readRegularFile(dir.join('dangling'), 1000), { code: 'ENOENT' });
});

test('readRegularFile: reads a file, one of the largest size, one behind links, and one that reports no size', (t) => {
  const dir = createTempDir('file');
  t.teardown(dir.close);
  writeFileSync(dir.join('f'), 'x'.repeat(100_000));
  symlinkSync('f', dir.join('l'));
  symlinkSync('l', dir.join('k'));
  t.is(readRegularText(dir.join('k'), 100_000), 'x'.repeat(100_000));
  writeFileSync(dir.join('empty'), '');
  t.is(readRegularText(dir.join('empty'), 0), '');
  t.regex(readRegularText('/proc/self/status', 100_000), /^Name:/);
});
