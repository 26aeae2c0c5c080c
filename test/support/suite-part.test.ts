import test from 'ava';
import { findPartedFiles } from '../../tools/parted-files.ts';
import { longTest, partOf } from './suite-part.ts';

test('findPartedFiles: finds files that leave cases to the suite long, and no others', (t) => {
  const parted = findPartedFiles();
  t.true(parted.length > 30, `${parted.length} files`);
  t.true(parted.includes('test/ipamd/guests/static/claim-laws.test.ts'));
  t.false(parted.some((path) => path.includes('suite-part') || path.endsWith('.long.test.ts')));
});

test('partOf: has what a file of make test tries, and fails where that is nothing', (t) => {
  t.deepEqual(
    partOf([1, 2, 3], (one) => one < 3),
    [1, 2],
  );
  t.throws(() => partOf([1, 2, 3], () => false), { message: /^no case is left for .*suite-part\.test\.ts$/ });
});

longTest('longTest: registers nothing in a file of make test', (t) => t.fail());
