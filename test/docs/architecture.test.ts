import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const ROOT = join(import.meta.dirname, '..', '..');
const LAYERS: {
  readonly folders: Readonly<
    Record<string, { readonly folders: readonly string[]; readonly packages: readonly string[] }>
  >;
  readonly free: readonly string[];
} = JSON.parse(readFileSync(join(ROOT, 'tools/layers.json'), 'utf8'));
const ROWS = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    if (!/^\| `[\w/-]+\/`/.test(line)) return [];
    const [first = '', , last = ''] = line.split(' | ');
    return [{ folders: spansOf(first).map((span) => span.replace(/\/$/, '')), mayImport: spansOf(last) }];
  });

function spansOf(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
}

function foldersBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => [`${folder}/${name}`, ...foldersBelow(`${folder}/${name}`)]);
}

test('docs/architecture.md: has a row for every folder of the product, and for no other', (t) => {
  const named = ROWS.flatMap(({ folders }) => folders);
  const product = Object.keys(LAYERS.folders);
  const wanted = new Set([...product, ...LAYERS.free, ...product.flatMap(foldersBelow)]);
  t.deepEqual(
    [...wanted].filter((folder) => !named.includes(folder)),
    [],
    'without a row',
  );
  t.deepEqual(
    named.filter((folder) => !wanted.has(folder) || !existsSync(join(ROOT, folder))),
    [],
    'rows of folders that are not there',
  );
});

test('docs/architecture.md: says who may import whom as tools/layers.json does', (t) => {
  const known = new Set(Object.entries(LAYERS.folders).flatMap(([name, { packages }]) => [name, ...packages]));
  for (const [folder, { folders, packages }] of Object.entries(LAYERS.folders)) {
    const row = ROWS.find((candidate) => candidate.folders.includes(folder));
    const said = (row?.mayImport ?? []).filter((name) => known.has(name));
    t.deepEqual([...new Set(said)].toSorted(), [...folders, ...packages].toSorted(), folder);
  }
});
