import test from 'ava';
import { findPeer } from '../../../../cli/commands/diff/read-veth-peers.ts';

const candidates = ['dying', 'other', 'pod'].map((name) => ({ path: `/run/netns/${name}`, name }));
const find = (answers: Readonly<Record<string, boolean | 'unreadable'>>) =>
  findPeer(candidates, ({ name }) => answers[name] ?? false);

test('findPeer: finds it behind a namespace that cannot be looked into', (t) => {
  t.deepEqual(find({ dying: 'unreadable', pod: true }), { kind: 'netns', path: 'pod' });
});
test('findPeer: does not know where it is when one could not be looked into', (t) => {
  const why = 'dying could not be looked into';
  t.deepEqual(find({ dying: 'unreadable', other: 'unreadable' }), { kind: 'unknown', why });
});
test('findPeer: it is in none of those that were looked into', (t) => t.is(find({}), undefined));
