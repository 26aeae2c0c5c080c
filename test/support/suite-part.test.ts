import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import test from 'ava';
import { longTest, partOf } from './suite-part.ts';

const read = (path: string): string => readFileSync(path, 'utf8');

test('suite-part: every file that leaves cases to the suite long has a file there that imports it', (t) => {
  const files = globSync('test/*/**/*.test.ts', { exclude: ['test/**/*.long.test.ts'] });
  const parted = files.filter((path) => /^import .* from '[./]*\/support\/suite-part\.ts';$/m.test(read(path)));
  t.true(parted.length > 30, `${parted.length} files`);
  const lost = parted.filter((path) => {
    const long = path.replace(/\.test\.ts$/, '.long.test.ts');
    return !existsSync(long) || !read(long).includes(`\nimport './${basename(path)}';\n`);
  });
  t.deepEqual(lost, []);
});

test('partOf: has what a file of make test tries, and fails where that is nothing', (t) => {
  t.deepEqual(
    partOf([1, 2, 3], (one) => one < 3),
    [1, 2],
  );
  t.throws(() => partOf([1, 2, 3], () => false), { message: /^no case is left for .*suite-part\.test\.ts$/ });
});

longTest('longTest: registers nothing in a file of make test', (t) => t.fail());
