import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readConfFiles } from '../../../../cli/commands/doctor/read-conf-files.ts';
import { openHostTree } from '../../../../inspection/node/host-tree.ts';
import { createTempDir } from '../../../support/temp-dir.ts';

// A file may be anything: the doctor must neither wait nor fall over.

test('readConfFiles: reads regular files, of large ones the beginning, and waits for no other kind', (t) => {
  const root = createTempDir('host-tree');
  try {
    const folder = join(root.path, 'etc');
    mkdirSync(join(folder, '60-folder.conf'), { recursive: true });
    execFileSync('mkfifo', [join(folder, '10-pipe.conf')]);
    for (const [name, target] of [
      ['20-loop.conf', '20-loop.conf'],
      ['30-dangling.conf', '/nowhere'],
      ['40-masked.conf', '/dev/null'],
      ['50-endless.conf', '/dev/zero'],
    ] as const) {
      symlinkSync(target, join(folder, name));
    }
    symlinkSync('/dev', join(root.path, 'dev'));
    writeFileSync(join(folder, '70-large.conf'), `a=1\n${'x'.repeat(3 << 20)}`);
    writeFileSync(join(folder, '80-binary.conf'), Buffer.from([0xff, 0x00, 0x0a, 0xfe]));
    const files = readConfFiles(openHostTree(root.path), ['/etc'], '.conf');
    t.deepEqual(
      files.map(({ path, text }) => [path, text.length]),
      [
        ['/etc/10-pipe.conf', 0],
        ['/etc/20-loop.conf', 0],
        ['/etc/30-dangling.conf', 0],
        ['/etc/40-masked.conf', 0],
        ['/etc/50-endless.conf', 0],
        ['/etc/60-folder.conf', 0],
        ['/etc/70-large.conf', 1 << 20],
        ['/etc/80-binary.conf', 4],
      ],
    );
  } finally {
    root.close();
  }
});
