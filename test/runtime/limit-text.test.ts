import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { joinLimited, limitText, limitValue } from '../../runtime/limit-text.ts';
import { openPinoLogger } from '../../runtime/pino-logger.ts';
import { createTempDir } from '../support/temp-dir.ts';

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

test('limitValue: bounds texts, lists, objects and depth; leaves dates and errors', (t) => {
  const error = new Error('x'.repeat(10_000));
  const date = new Date(0);
  t.is(limitValue(error), error);
  t.is(limitValue(date), date);
  t.deepEqual(limitValue({ a: 1, b: [true, null] }), { a: 1, b: [true, null] });
  const list = limitValue(Array(1_000).fill(1)) as unknown[];
  t.deepEqual([list.length, list.at(-1)], [101, '… 900 more']);
  const object = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index]));
  t.is(Object.keys(limitValue(object) as object).length, 101);
  const ring: Record<string, unknown> = {};
  ring['ring'] = ring;
  t.true(JSON.stringify(limitValue(ring)).length < 20_000);
});

test('openPinoLogger: a line is short, whatever is logged', (t) => {
  const dir = createTempDir('log');
  const fd = openSync(dir.join('log'), 'w');
  const long = 'x'.repeat(2_000_000);
  const error = new Error(long, { cause: Object.assign(new Error(long), { code: long }) });
  error.cause = Object.assign(error.cause as Error, { cause: error });
  const log = openPinoLogger('info', fd);
  log.warn('one', { detail: long, error });
  log.child({ detail: long }).warn('two', { items: Array(100_000).fill({ long }) });
  closeSync(fd);
  const lines = readFileSync(dir.join('log'), 'utf8').trimEnd().split('\n');
  dir.close();
  t.is(lines.length, 2);
  for (const line of lines) t.true(line.length < 40_000, `${line.length} characters`);
  t.like(JSON.parse(lines[0] ?? ''), { msg: 'one', level: 'warn' });
});
