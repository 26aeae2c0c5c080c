import test from 'ava';
import { findDifferences } from './find-differences.ts';
import { readFrozen } from './frozen.ts';
import { TABLES } from './parts.ts';

for (const [name, record] of Object.entries(TABLES)) {
  test(`${name}.json: has the public names of the product, and no others`, (t) => {
    t.deepEqual(findDifferences(readFrozen(name), record()), []);
  });
}
