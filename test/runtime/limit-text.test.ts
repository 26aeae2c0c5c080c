import test from 'ava';
import { joinLimited, limitText } from '../../runtime/limit-text.ts';

test('limitText: cuts at the limit, and no surrogate pair in two', (t) => {
  t.is(limitText('abc', 3), 'abc');
  t.is(limitText('abcd', 3), 'ab…');
  t.is(limitText('a😀bc', 3), 'a…');
  t.is(limitText('', 1), '');
});

test('joinLimited: says how many more there are', (t) => {
  const items = Array.from({ length: 22 }, (_, index) => String(index));
  t.is(joinLimited(items.slice(0, 3)), '0, 1, 2');
  t.is(joinLimited(items.slice(0, 20), ':').split(':').length, 20);
  t.true(joinLimited(items).endsWith(', 19, and 2 more'));
});
