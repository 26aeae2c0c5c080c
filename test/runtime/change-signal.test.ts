import { getEventListeners } from 'node:events';
import test from 'ava';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { systemClock } from '../../runtime/clock.ts';

test('ChangeSignal: wakes all who wait when something changed', async (t) => {
  const changed = new ChangeSignal(systemClock);
  const { signal } = new AbortController();
  const woken = Promise.all([changed.wait(60_000, signal), changed.wait(60_000, signal)]);
  changed.notify();
  await t.notThrowsAsync(woken);
});

test('ChangeSignal: wakes when the signal aborts, and does not wait for one that has', async (t) => {
  const changed = new ChangeSignal(systemClock);
  const caller = new AbortController();
  const woken = changed.wait(60_000, caller.signal);
  caller.abort();
  await t.notThrowsAsync(woken);
  await t.notThrowsAsync(changed.wait(60_000, caller.signal));
});

test('ChangeSignal: leaves nothing on a signal that outlives the wait', async (t) => {
  const changed = new ChangeSignal(systemClock);
  const { signal } = new AbortController();
  for (let count = 0; count < 5; count++) await changed.wait(0, signal);
  t.is(getEventListeners(signal, 'abort').length, 0);
});
