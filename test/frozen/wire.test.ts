import test from 'ava';
import { isObject } from '../support/netns.ts';
import { findDifferences } from './find-differences.ts';
import { readEach, readFrozen } from './frozen.ts';
import { decodeByNumbers, encodeByNumbers, messageTables, recordMessages } from './record/messages.ts';
import { decodeByProto, readContracts } from './record/protos.ts';

const root = readContracts();
const tables = messageTables(root);

test('wire/messages.json: has the bytes of every message', (t) => {
  t.deepEqual(findDifferences(readFrozen('wire/messages'), recordMessages()), []);
});

for (const { release, content } of readEach('wire/messages')) {
  for (const [title, message] of Object.entries(content)) {
    test(`wire/messages.json of ${release}: ${title} is encoded to the recorded bytes, and these are decoded`, (t) => {
      const [name = ''] = title.split(' ');
      const table = tables.get(name);
      if (!isObject(message) || !isObject(message['value']) || table === undefined) return t.fail('no such message');
      const type = root.lookupType(name);
      const { value, bytes } = message;
      t.is(encodeByNumbers(table, type, value), String(bytes));
      t.deepEqual(decodeByNumbers(table, type, String(bytes)), value);
      // Somebody else's codec says the same.
      const judged: unknown = decodeByProto(type, Buffer.from(String(bytes), 'hex'));
      t.deepEqual(Object.keys(Object(judged)).sort(), Object.keys(value).sort());
    });
  }
}
