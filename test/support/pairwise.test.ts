import test from 'ava';
import { pickPairwise } from './pairwise.ts';

test('pickPairwise: has every pair of the table, in less cases than it', (t) => {
  const values = ['1', '2', '3'];
  const table = values.flatMap((a) =>
    values.flatMap((b) => values.flatMap((c) => values.map((d) => ({ a, b, c, d })))),
  );
  const picked = pickPairwise(table);
  t.true(picked.length >= 9 && picked.length < 20, `${picked.length}`);
  for (const one of table) t.true(picked.some(({ a, d }) => a === one.a && d === one.d));
  for (const one of table) t.true(picked.some(({ b, c }) => b === one.b && c === one.c));
});

test('pickPairwise: asks for no pair that the table does not have', (t) => {
  const table = [
    { from: 'x', to: 'y' },
    { from: 'y', to: 'x' },
  ];
  t.deepEqual(pickPairwise(table), table);
  t.deepEqual(pickPairwise([]), []);
});
