import { getEventListeners } from 'node:events';
import test from 'ava';
import { openChildSignal } from '../../runtime/child-signal.ts';

test('openChildSignal: children abort with their parent and its reason, closed ones do not', (t) => {
  const parent = new AbortController();
  const [first, second, closed] = [1, 2, 3].map(() => openChildSignal(parent.signal));
  closed?.close();
  t.is(getEventListeners(parent.signal, 'abort').length, 1);
  const reason = new Error('the end');
  parent.abort(reason);
  t.is(first?.signal.reason, reason);
  t.is(second?.signal.reason, reason);
  t.is(closed?.signal.aborted, false);
});
test('openChildSignal: the child of a parent that is over is over, and other children of it are untouched by one', (t) => {
  t.is(openChildSignal(AbortSignal.abort('over')).signal.reason, 'over');
  const parent = new AbortController();
  const first = openChildSignal(parent.signal);
  first.close();
  first.close();
  t.false(openChildSignal(parent.signal).signal.aborted);
});

test('openChildSignal: a child of two aborts with the first, and alone; then its parents are untouched', (t) => {
  const [one, other] = [new AbortController(), new AbortController()];
  const child = openChildSignal(one.signal, other.signal);
  other.abort('second');
  t.is(child.signal.reason, 'second');
  t.false(one.signal.aborted);
  const alone = openChildSignal(one.signal);
  alone.abort('alone');
  t.is(alone.signal.reason, 'alone');
  t.false(one.signal.aborted);
});
