import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';

const ROOT = join(import.meta.dirname, '..', '..');
/** The last cell of a row: a file, and words of a title in it. */
const ROWS = [...readFileSync(join(ROOT, 'docs/guarantees.md'), 'utf8').matchAll(/^\| .* \| `([^`]+)`: (.+) \|$/gm)];

test('docs/guarantees.md: each row names a test that is there', (t) => {
  t.true(ROWS.length > 30);
  const wrong = ROWS.filter(([, file = '', title = '']) => {
    const path = join(ROOT, file);
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(title);
  });
  t.deepEqual(
    wrong.map(([row]) => row),
    [],
  );
});

test('docs/guarantees.md: each row of a table has a test', (t) => {
  const lines = readFileSync(join(ROOT, 'docs/guarantees.md'), 'utf8').split('\n');
  const rows = lines.filter((line) => line.startsWith('| ') && !line.startsWith('| fault |'));
  t.is(rows.length, ROWS.length);
});
