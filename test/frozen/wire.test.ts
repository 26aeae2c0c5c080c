import test from 'ava';
import { decodeMessage, encodeMessage, type MessageTable } from '../../agent/api/codec.ts';
import { ATTACH_REPLY } from '../../agent/api/messages.ts';
import { isObject } from '../../sim/support/netns.ts';
import { findDifferences } from './find-differences.ts';
import { readEach, readFrozen } from './frozen.ts';
import { decodeByNumbers, encodeByNumbers, messageTables, recordMessages } from './record/messages.ts';
import { decodeByProto, readContracts } from './record/protos.ts';

const root = readContracts();
const tables = messageTables(root);

test('wire/messages.json: has the bytes of every message', (t) => {
  t.deepEqual(findDifferences(readFrozen('wire/messages'), recordMessages()), []);
});

for (const { release, content } of readEach('wire/protos')) {
  test(`an executable of ${release} reads the error of an agent that leaves a network to other plugins`, (t) => {
    const reply = content['tke.eni.v1.AttachReply'];
    const known = isObject(reply) && isObject(reply['fields']) ? Object.keys(reply['fields']) : [];
    const table = Object.fromEntries(
      Object.entries(ATTACH_REPLY).filter(([name]) =>
        known.includes(name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`)),
      ),
    );
    const error = { code: 7, msg: 'no network can be chosen', details: 'of an older release' };
    const delegate = { network: 'storage', confDir: '/etc/cni/net.d/multus' };
    const bytes = encodeMessage(ATTACH_REPLY, { error, delegate, agentVersion: 'r' });
    t.like(decodeMessage(table as MessageTable, bytes), { error, attachment: undefined, agentVersion: 'r' });
  });
}

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
