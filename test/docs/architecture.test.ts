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
/** Folders with a README of their own, by the rows that lead to it. */
const ROOMS = [...read('docs/architecture.md').matchAll(/^\| \[`([\w-]+)\/`\]\(\.\.\/\1\/README\.md\)/gm)].map(
  ([, room = '']) => room,
);
const ROWS = ['docs/architecture.md', ...ROOMS.map((room) => `${room}/README.md`)]
  .flatMap((page) => read(page).split('\n'))
  .flatMap((line) => {
    if (!/^\| \[?`[\w/-]+(?:\/|\.ts)`/.test(line)) return [];
    const [first = '', , last = ''] = line.split(' | ');
    return [{ folders: spansOf(first).map((span) => span.replace(/\/$/, '')), mayImport: spansOf(last) }];
  });

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

function spansOf(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
}

/** Reports whether a folder has a file or folder of this name, in it or one level below. */
function isThere(room: string, name: string): boolean {
  const below = [
    '',
    ...readdirSync(join(ROOT, room), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    ),
  ];
  return below.some((folder) => [name, `${name}.ts`].some((file) => existsSync(join(ROOT, room, folder, file))));
}

function foldersBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => [`${folder}/${name}`, ...foldersBelow(`${folder}/${name}`)]);
}

test('architecture: a row for every folder of the product, and for no other', (t) => {
  const named = ROWS.flatMap(({ folders }) => folders);
  const product = Object.keys(LAYERS.folders);
  const folders = product.filter((name) => !name.endsWith('.ts'));
  const below = [...folders.flatMap(foldersBelow), 'sim/kernel', 'sim/kube-api', 'sim/support', 'sim/vpc'];
  const wanted = new Set([...product, ...LAYERS.free, ...below]);
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

test('architecture: each folder of the product has a README of at most 40 lines that begins with its algorithm', (t) => {
  const wanted = [...new Set(Object.keys(LAYERS.folders).map((folder) => folder.replace(/\/.*/, ''))), 'sim'];
  t.deepEqual(ROOMS.toSorted(), wanted.toSorted());
  for (const room of ROOMS) {
    const lines = read(`${room}/README.md`).trimEnd().split('\n');
    t.true(lines.length <= 40, `${room}: ${lines.length} lines`);
    const [begin, end] = [lines.indexOf('```'), lines.lastIndexOf('```')];
    t.true(begin >= 0 && begin <= 4 && end - begin - 1 <= 10, `${room}: lines ${begin + 1} to ${end + 1}`);
  }
});

test('architecture: every name in the algorithm of a README is a file or folder there', (t) => {
  for (const room of ROOMS) {
    const [, algorithm = ''] = read(`${room}/README.md`).split('```');
    const named = [...algorithm.matchAll(/ {2,}([\w/-]+(?:, [\w/-]+)*)$/gm)].flatMap(([, names = '']) =>
      names.split(', '),
    );
    const missing = named.filter((name) => !isThere(room, name));
    t.deepEqual(missing, [], room);
  }
});

test('docs/architecture.md: says who may import whom as tools/layers.json does', (t) => {
  const known = new Set(Object.entries(LAYERS.folders).flatMap(([name, { packages }]) => [name, ...packages]));
  for (const [folder, { folders, packages }] of Object.entries(LAYERS.folders)) {
    const row = ROWS.find((candidate) => candidate.folders.includes(folder));
    const said = (row?.mayImport ?? []).filter((name) => known.has(name));
    t.deepEqual([...new Set(said)].toSorted(), [...folders, ...packages].toSorted(), folder);
  }
});
