import { getEventListeners } from 'node:events';
import test from 'ava';
import { onAbort } from '../../runtime/on-abort.ts';

test('onAbort: calls each listener once, in order, and none that was ended or came too late', (t) => {
  const called: string[] = [];
  const { signal, abort } = make();
  const note = (name: string) => () => void called.push(name);
  onAbort(signal, note('first'));
  const end = onAbort(signal, note('ended'));
  const twice = note('twice');
  onAbort(signal, twice);
  onAbort(signal, twice);
  end();
  end();
  abort();
  onAbort(signal, note('late'));
  t.deepEqual(called, ['first', 'twice', 'twice']);
});

test('onAbort: a listener may end those after it, and add others, which are not called', (t) => {
  const called: string[] = [];
  const { signal, abort } = make();
  onAbort(signal, () => {
    called.push('first');
    end();
    onAbort(signal, () => void called.push('added'));
  });
  const end = onAbort(signal, () => void called.push('second'));
  abort();
  t.deepEqual(called, ['first']);
});

test('onAbort: a signal has one listener of ours however many wait, and none when nothing does', (t) => {
  const { signal } = make();
  const ends = Array.from({ length: 1_000 }, () => onAbort(signal, () => undefined));
  t.is(getEventListeners(signal, 'abort').length, 1);
  for (const end of ends) end();
  t.is(getEventListeners(signal, 'abort').length, 0);
});

function make() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort('over') };
}
