import test from 'ava';
import { findDifferences, findLosses } from './find-differences.ts';

test('findDifferences: names what was added, changed and taken away, with what each asks for; the order of keys is none', (t) => {
  const recorded = { 'tke-eni': { pool: { type: 'string' }, watch: [{ a: 1, b: 2 }] }, kept: 1 };
  t.deepEqual(
    findDifferences(recorded, { kept: 1, 'tke-eni': { watch: [{ b: 2, a: 1 }], pool: { type: 'string' } } }),
    [],
  );
  const found = findDifferences(recorded, {
    'tke-eni': { pool: { type: 'number' }, watch: [{ a: 1, b: 2, c: 3 }], top: true },
  });
  t.deepEqual(
    found.map((line) => line.split(':').slice(0, 2).join(':')),
    [
      'gone: kept = 1',
      'changed: tke-eni > pool > type',
      'added: tke-eni > watch[0] > c = 3',
      'added: tke-eni > top = true',
    ],
  );
  t.regex(found[2] ?? '', /add it to the file of this name in test\/frozen\/next .* and write a CHANGELOG line/);
  t.deepEqual(
    findLosses(recorded, { kept: 1, new: 2, 'tke-eni': { pool: { type: 'string' }, watch: [{ a: 1, b: 2 }] } }),
    [],
  );
});
