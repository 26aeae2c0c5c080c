import test from 'ava';
import { messageOf } from '../../runtime/error-text.ts';
import { listOf, recordOf, recordsOf, textOf, textsOf, wholeNumberOf } from '../../runtime/json.ts';

/** Every type that JSON has, and undefined for a field that is missing. */
const VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  1,
  'text',
  [],
  [1, 'a', null, { a: 1 }, ['b']],
  {},
  { a: 1 },
];

const reads = test.macro(
  (t, read: (value: unknown) => unknown, empty: unknown, found: ReadonlyMap<number, unknown>) => {
    VALUES.forEach((value, index) => {
      t.deepEqual(read(value), found.get(index) ?? empty, `value ${index}`);
    });
  },
);

test('recordOf: reads objects only', reads, recordOf, {}, new Map([[8, { a: 1 }]]));
test('recordsOf: reads the objects of a list', reads, recordsOf, [], new Map([[6, [{ a: 1 }]]]));
test('textOf: reads texts only', reads, textOf, '', new Map([[4, 'text']]));
test('textsOf: reads the texts of a list', reads, textsOf, [], new Map([[6, ['a']]]));
test('listOf: reads lists only', reads, listOf, [], new Map([[6, VALUES[6]]]));
test('wholeNumberOf: reads whole numbers only', reads, wholeNumberOf, 0, new Map([[3, 1]]));

test('wholeNumberOf: what is negative, broken or too large is 0', (t) => {
  for (const value of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) t.is(wholeNumberOf(value), 0);
  t.is(wholeNumberOf(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
});

test('messageOf: the text of an error, or the value', (t) => {
  t.deepEqual([new RangeError('too far'), 'thrown', 5, undefined].map(messageOf), [
    'too far',
    'thrown',
    '5',
    'undefined',
  ]);
});
