import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { busyboxImage, imageTar, tar } from './image-tar.ts';
import { run } from './run.ts';
import { createTempDir } from './temp-dir.ts';

test('tar: the system tar unpacks files, folders and links as they were given', async (t) => {
  const dir = createTempDir('tar');
  try {
    const content = Buffer.alloc(700, 'x');
    const archive = tar([
      { kind: 'folder', path: 'bin' },
      { kind: 'file', path: 'bin/tool', content, mode: 0o755 },
      { kind: 'symlink', path: 'bin/alias', target: 'tool' },
    ]);
    writeFileSync(dir.join('a.tar'), archive);
    await run(['tar', '-x', '-f', dir.join('a.tar'), '-C', dir.path]);
    t.deepEqual(readFileSync(dir.join('bin', 'alias')), content);
    t.regex(await run(['ls', '-l', dir.join('bin', 'tool')]), /^-rwxr-xr-x/);
  } finally {
    dir.close();
  }
});

test('imageTar: the manifest names a config whose layer digest is that of the layer', async (t) => {
  const dir = createTempDir('tar');
  try {
    writeFileSync(dir.join('i.tar'), imageTar(busyboxImage('localhost/x:1', Buffer.from('busybox'), ['/bin/sleep'])));
    await run(['tar', '-x', '-f', dir.join('i.tar'), '-C', dir.path]);
    const [manifest] = JSON.parse(readFileSync(dir.join('manifest.json'), 'utf8'));
    const config = JSON.parse(readFileSync(dir.join(manifest.Config), 'utf8'));
    const layer = createHash('sha256')
      .update(readFileSync(dir.join(manifest.Layers[0])))
      .digest('hex');
    t.deepEqual(config.rootfs.diff_ids, [`sha256:${layer}`]);
    t.deepEqual(manifest.RepoTags, ['localhost/x:1']);
  } finally {
    dir.close();
  }
});
