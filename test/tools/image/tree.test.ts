import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import test from 'ava';
import type { TarEntry } from '../../../runtime/tar.ts';
import { tar } from '../../../runtime/tar.ts';
import { run } from '../../../sim/support/run.ts';
import { fingerprintOf, orderLayers, writeTree } from '../../../tools/image/tree.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const file = (path: string, text = path): TarEntry => ({ kind: 'file', path, content: Buffer.from(text), mode: 0o755 });
const pathsOf = (entries: readonly TarEntry[] = []): readonly string[] => entries.map(({ path }) => path);

test('orderLayers: sorts, adds the folders around, puts hard links last, and repeats nothing of a layer below', (t) => {
  const [below, above] = orderLayers([
    { name: 'below', entries: [file('usr/lib/z'), file('usr/lib/a')] },
    {
      name: 'above',
      entries: [
        { kind: 'link', path: 'opt/a', target: 'opt/b', mode: 0o755 },
        file('opt/b'),
        file('usr/lib/a'),
        file('usr/lib/b'),
      ],
    },
  ]);
  t.deepEqual(pathsOf(below?.entries), ['usr', 'usr/lib', 'usr/lib/a', 'usr/lib/z']);
  t.deepEqual(pathsOf(above?.entries), ['opt', 'opt/b', 'usr/lib/b', 'opt/a']);
});

test('orderLayers: refuses two contents for one path', (t) => {
  const layers = [
    { name: 'below', entries: [file('etc/x', '1')] },
    { name: 'above', entries: [file('etc/x', '2')] },
  ];
  t.throws(() => orderLayers(layers), { message: 'layer above: etc/x is given twice, and differently' });
});

test('writeTree: lays out what a tar of the same layers unpacks to', async (t) => {
  const dir = createTempDir('tree');
  try {
    writeFileSync(dir.join('source'), 'copied');
    const layers = orderLayers([
      {
        name: 'x',
        entries: [
          file('usr/bin/b'),
          { kind: 'link', path: 'usr/bin/a', target: 'usr/bin/b', mode: 0o755 },
          { kind: 'symlink', path: 'bin', target: 'usr/bin' },
          { kind: 'copy', path: 'etc/c', source: dir.join('source') },
          { kind: 'folder', path: 'tmp', mode: 0o1777 },
        ],
      },
    ]);
    await writeTree(dir.join('tree'), layers);
    writeFileSync(dir.join('x.tar'), tar(layers.flatMap(({ entries }) => entries)));
    mkdirSync(dir.join('tar'));
    await run(['tar', '-x', '-p', '-f', dir.join('x.tar'), '-C', dir.join('tar')]);
    const listing = (root: string) => run(['find', '.', '-printf', '%P %y %m %n %l\n'], { cwd: dir.join(root) });
    const sorted = (text: string) =>
      text
        .split('\n')
        .filter((line) => !line.startsWith(' '))
        .sort();
    t.deepEqual(sorted(await listing('tree')), sorted(await listing('tar')));
    t.is(readFileSync(dir.join('tree', 'bin', 'a'), 'utf8'), 'usr/bin/b');
    t.is(statSync(dir.join('tree', 'tmp')).mode & 0o7777, 0o1777);
    t.deepEqual(readdirSync(dir.join('tree')).sort(), ['bin', 'etc', 'tmp', 'usr']);
  } finally {
    dir.close();
  }
});

test('fingerprintOf: changes with the content of a file, not with its time', (t) => {
  const dir = createTempDir('tree');
  try {
    const layers = [{ name: 'x', entries: [{ kind: 'copy', path: 'c', source: dir.join('c') }] }] as const;
    const after = (text: string) => {
      writeFileSync(dir.join('c'), text);
      return JSON.stringify(fingerprintOf(layers));
    };
    const first = after('1');
    t.is(after('1'), first);
    t.not(after('2'), first);
  } finally {
    dir.close();
  }
});
