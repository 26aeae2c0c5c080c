import test from 'ava';
import { OwnState } from '../../../ipamd/calls/own-state.ts';

const open = (): OwnState<string> => new OwnState((one, other) => one === other);
const SECOND_MS = 1_000;

test('OwnState: the first state of an object is ours, also of a new object of the name', (t) => {
  const own = open();
  t.deepEqual(own.classify('u1', 'a', 0, true), { kind: 'ours' });
  own.take('u1', 'a');
  t.deepEqual(own.classify('u1', 'a', 0, false), { kind: 'ours' });
  t.deepEqual(own.classify('u2', 'b', 0, false), { kind: 'ours' });
});

test('OwnState: what differs may be inherited, until this leader has written the object', (t) => {
  const own = open();
  own.take('u1', 'a');
  t.deepEqual(own.classify('u1', 'b', 0, true), { kind: 'inherited' });
  own.take('u1', 'b');
  t.deepEqual(own.classify('u1', 'c', 0, false), { kind: 'edited', own: 'b', waitMs: 0 });
  own.noteWritten('u1', 'd');
  t.deepEqual(own.classify('u1', 'c', 0, true), { kind: 'edited', own: 'd', waitMs: 0 });
});

test('OwnState: a write without an answer may have its effect, and then it is this leader’s', (t) => {
  const own = open();
  own.take('u1', 'a');
  own.noteAttempt('u1', 'b');
  t.deepEqual(own.classify('u1', 'a', 0, false), { kind: 'ours' });
  t.deepEqual(own.classify('u1', 'b', 0, false), { kind: 'ours' });
  t.false(own.isWritten);
  own.take('u1', 'b');
  t.true(own.isWritten);
  t.deepEqual(own.classify('u1', 'a', 0, true), { kind: 'edited', own: 'b', waitMs: 0 });
});

test('OwnState: a client that writes again and again is answered once a second', (t) => {
  const own = open();
  own.noteWritten('u1', 'a');
  own.noteUndone(5 * SECOND_MS);
  t.deepEqual(own.classify('u1', 'b', 5_400, false), { kind: 'edited', own: 'a', waitMs: 600 });
  t.deepEqual(own.classify('u1', 'b', 6 * SECOND_MS, false), { kind: 'edited', own: 'a', waitMs: 0 });
});

test('OwnState: a state that cannot be read is no state to go back to', (t) => {
  const own = open();
  own.take('u1', 'a');
  own.takeFormer('u1', undefined);
  t.deepEqual(own.classify('u1', 'b', 0, false), { kind: 'ours' });
});
