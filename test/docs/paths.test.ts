import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = [
  ...['README.md', 'CONTRIBUTING.md'],
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const FOLDERS = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !['node_modules', 'dist'].includes(entry.name))
  .map(({ name }) => name);

/** Made by the first public name that is added after a release. */
const LATER = ['test/frozen/next/'];

/** A code span that is a path from the root of the repository, to a file or, with a slash at its end, to a folder. */
const PATH = new RegExp(
  `\`((?:${FOLDERS.join('|')})/(?:[\\w.-]+/)*(?:[\\w-][\\w.-]*\\.(?:ts|json|proto|md|ya?ml|sh))?)\``,
  'g',
);
/** A path to a source file, and beside it, in the same sentence or the next cell, the name of something in it. */
const NAME_IN_FILE = /`((?:[\w-]+\/)+[\w.-]+\.ts)`\s*\|?\s*`(\w+)`/g;

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Reports whether the source declares the name: as a function, class, constant or type, or as a method. */
function declares(source: string, name: string): boolean {
  const declaration = new RegExp(`^(?:export )?(?:async )?(?:function|class|const|type) ${name}\\b`, 'm');
  const method = new RegExp(`^ {2}(?:async |readonly )*#?${name}[(:]`, 'm');
  return declaration.test(source) || method.test(source);
}

for (const page of PAGES) {
  test(`${page}: names files that exist`, (t) => {
    const paths = [...read(page).matchAll(PATH)].map(([, path = '']) => path);
    t.deepEqual(
      paths.filter((path) => !LATER.includes(path) && !existsSync(join(ROOT, path))),
      [],
    );
  });

  test(`${page}: names functions that the files beside them declare`, (t) => {
    const missing = [...read(page).matchAll(NAME_IN_FILE)].flatMap(([, path = '', name = '']) =>
      existsSync(join(ROOT, path)) && declares(read(path), name) ? [] : [`${path}: ${name}`],
    );
    t.deepEqual(missing, []);
  });
}

test('docs/start-here.md: names a function beside each file of its walks', (t) => {
  const rows = [...read('docs/start-here.md').matchAll(/^\| \d+ \| .*$/gm)].map(([row]) => row);
  t.true(rows.length > 40);
  t.deepEqual(
    rows.filter((row) => [...row.matchAll(NAME_IN_FILE)].length === 0),
    [],
  );
});
