import test from 'ava';
import { limitValue } from '../../runtime/limit-value.ts';

test('limitValue: bounds texts, lists, objects and depth', (t) => {
  t.deepEqual(limitValue({ a: 1, b: [true, null] }), { a: 1, b: [true, null] });
  const list = limitValue(Array(1_000).fill(1)) as unknown[];
  t.deepEqual([list.length, list.at(-1)], [101, '… 900 more']);
  const object = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index]));
  t.is(Object.keys(limitValue(object) as object).length, 101);
  const ring: Record<string, unknown> = {};
  ring['ring'] = ring;
  t.true(JSON.stringify(limitValue(ring)).length < 20_000);
});

test('limitValue: shows dates, URLs, bytes, large numbers, maps, instances and errors, wherever they are', (t) => {
  class Thing {
    readonly name = 'n';
  }
  const refused = Object.assign(new Error('refused', { cause: 'why' }), { code: 'ECONNREFUSED' });
  const values = [
    new Date(0),
    new URL('http://a/b'),
    Buffer.from('ab'),
    12n,
    new Map([['k', 1]]),
    new Thing(),
    refused,
  ];
  t.deepEqual(limitValue(values), [
    ...['1970-01-01T00:00:00.000Z', 'http://a/b', '6162', '12', [['k', 1]], { name: 'n' }],
    { name: 'Error', message: 'refused', code: 'ECONNREFUSED', cause: 'why' },
  ]);
  const failing = {
    get value(): string {
      throw new Error('no');
    },
  };
  t.is(limitValue(failing), '(cannot be shown)');
});
