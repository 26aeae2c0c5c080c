import test from 'ava';
import { MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import { plainLines, plainText } from '../../runtime/plain-text.ts';

test('plainText: shows what is invisible, turns the text or moves a cursor', (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['web-0 Привет 例え é 😀', 'web-0 Привет 例え é 😀'],
    ['a\u001b[2Jb\n', 'a\\x1b[2Jb\\x0a'],
    ['evil\u202egnp.exe\u2066', 'evil\\u202egnp.exe\\u2066'],
    ['a\u200bb\ufeffc\u00add\u061c', 'a\\u200bb\\ufeffc\\u00add\\u061c'],
    ['a\u{e0041}b', 'a\\u{e0041}b'],
    ['a\udcffb', 'a\\xffb'],
  ];
  for (const [text, shown] of cases) t.is(plainText(text), shown);
  t.is(plainLines('a\u202e\nb\t'), 'a\\u202e\nb\\x09');
});

test('messageText: is plain, and within its bound', (t) => {
  t.is(messageText('host \u202e.com', MAX_TEXT.event), 'host \\u202e.com');
  t.is(messageText('\u202e'.repeat(2_000), MAX_TEXT.event).length, MAX_TEXT.event);
});
