import test from 'ava';
import { readTaintSelector } from '../../../ipamd/config/taint-selector.ts';

const read = test.macro((t, text: string, expected: ReturnType<typeof readTaintSelector>) =>
  t.deepEqual(readTaintSelector(text), expected),
);
test('readTaintSelector: a key', read, 'example.com/boot', { key: 'example.com/boot' });
test('readTaintSelector: a key without domain', read, 'boot', { key: 'boot' });
test('readTaintSelector: key and effect', read, 'boot:NoExecute', { key: 'boot', effect: 'NoExecute' });
test('readTaintSelector: all three', read, 'a/b=c:NoSchedule', { key: 'a/b', value: 'c', effect: 'NoSchedule' });
test('readTaintSelector: an empty value', read, 'a/b=:NoSchedule', { key: 'a/b', value: '', effect: 'NoSchedule' });
for (const text of ['', 'a/', '/b', 'a/b:No', 'a b', 'a/b=c d', 'a/b/c', '*', 'a/*'])
  test(`readTaintSelector: not ${JSON.stringify(text)}`, read, text, undefined);
