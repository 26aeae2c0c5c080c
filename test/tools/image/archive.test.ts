import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { run } from '../../../sim/support/run.ts';
import { fullReference, type ImageSpec, imageBytes, writeImage } from '../../../tools/image/archive.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

const SPEC: ImageSpec = {
  reference: 'thing:1.2',
  entrypoint: ['/bin/thing'],
  env: ['PATH=/bin'],
  user: '65532:65532',
  labels: { 'org.opencontainers.image.version': '1.2' },
  createdS: 1_700_000_000,
  layers: [
    { name: 'below', entries: [{ kind: 'file', path: 'a', content: Buffer.from('a') }] },
    { name: 'above', entries: [{ kind: 'file', path: 'b', content: Buffer.from('b') }] },
  ],
};

async function unpack(dir: TempDir): Promise<(...path: readonly string[]) => Buffer> {
  writeFileSync(dir.join('i.tar'), imageBytes(SPEC));
  await run(['tar', '-x', '-f', dir.join('i.tar'), '-C', dir.path]);
  return (...path) => readFileSync(dir.join(...path));
}

test('imageBytes: every blob has the digest that it is named by, and nothing else is in the archive', async (t) => {
  const dir = createTempDir('image');
  try {
    const read = await unpack(dir);
    const blobs = readdirSync(dir.join('blobs', 'sha256'));
    for (const blob of blobs)
      t.is(
        createHash('sha256')
          .update(read('blobs', 'sha256', blob))
          .digest('hex'),
        blob,
      );
    t.is(blobs.length, 4, 'two layers, config, manifest');
    t.deepEqual(readdirSync(dir.path).sort(), ['blobs', 'i.tar', 'index.json', 'manifest.json', 'oci-layout']);
  } finally {
    dir.close();
  }
});

test('imageBytes: read as an OCI layout and as a docker-archive it is one image', async (t) => {
  const dir = createTempDir('image');
  try {
    const read = await unpack(dir);
    const blob = (digest: string) => JSON.parse(read('blobs', ...digest.split(':')).toString());
    const [docker] = JSON.parse(read('manifest.json').toString());
    const [entry] = JSON.parse(read('index.json').toString()).manifests;
    t.is(entry.annotations['io.containerd.image.name'], 'docker.io/library/thing:1.2');
    t.deepEqual(docker.RepoTags, ['thing:1.2']);
    const manifest = blob(entry.digest);
    const pathOf = ({ digest }: { readonly digest: string }) => `blobs/${digest.replace(':', '/')}`;
    t.is(docker.Config, pathOf(manifest.config));
    t.deepEqual(docker.Layers, manifest.layers.map(pathOf));
    for (const { digest, size } of [entry, manifest.config, ...manifest.layers]) {
      t.is(read('blobs', ...digest.split(':')).length, size);
    }
    const { config, rootfs, created } = blob(manifest.config.digest);
    t.deepEqual(
      rootfs.diff_ids,
      manifest.layers.map((layer: { readonly digest: string }) => layer.digest),
      'layers are not compressed',
    );
    t.is(created, '2023-11-14T22:13:20Z');
    t.is(config.User, '65532:65532');
    t.deepEqual(config.Entrypoint, ['/bin/thing']);
  } finally {
    dir.close();
  }
});

test('writeImage: writes the same bytes twice, and tells the digests', async (t) => {
  const dir = createTempDir('image');
  try {
    const first = await writeImage(dir.join('1.tar'), SPEC);
    const second = await writeImage(dir.join('deep', '2.tar'), SPEC);
    t.deepEqual(first, second);
    t.deepEqual(readFileSync(dir.join('1.tar')), readFileSync(dir.join('deep', '2.tar')));
    t.deepEqual(readFileSync(dir.join('1.tar')), imageBytes(SPEC));
    t.deepEqual(
      first.layers.map(({ name }) => name),
      ['below', 'above'],
    );
    const other = await writeImage(dir.join('3.tar'), { ...SPEC, user: '0:0' });
    t.not(other.id, first.id);
  } finally {
    dir.close();
  }
});

test('writeImage: leaves no half of an image when a file cannot be read', async (t) => {
  const dir = createTempDir('image');
  try {
    const layers = [{ name: 'x', entries: [{ kind: 'copy', path: 'x', source: dir.join('not-there') }] }] as const;
    await t.throwsAsync(writeImage(dir.join('1.tar'), { ...SPEC, layers }), { code: 'ENOENT' });
    t.deepEqual(readdirSync(dir.path), []);
  } finally {
    dir.close();
  }
});

const completes = test.macro((t, reference: string, full: string) => {
  t.is(fullReference(reference), full);
});
test('fullReference: a bare name', completes, 'a:1', 'docker.io/library/a:1');
test('fullReference: an account', completes, 'team/a:1', 'docker.io/team/a:1');
test('fullReference: a registry', completes, 'registry.example/team/a:1', 'registry.example/team/a:1');
test('fullReference: a registry with a port', completes, 'registry:5000/a:1', 'registry:5000/a:1');
test('fullReference: this machine', completes, 'localhost/a:1', 'localhost/a:1');
