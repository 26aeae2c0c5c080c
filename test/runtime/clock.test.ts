import { getEventListeners } from 'node:events';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';

test('sleep: ends after its time, and leaves nothing on the signal', async (t) => {
  const { signal } = new AbortController();
  const startedMs = systemClock.monotonicMs();
  await systemClock.sleep(5, signal);
  // A timer of Node may be up to a millisecond early.
  t.true(systemClock.monotonicMs() - startedMs >= 4);
  t.is(getEventListeners(signal, 'abort').length, 0);
});

test('sleep: rejects with the very reason of its signal, aborted before or meanwhile', async (t) => {
  const reason = new Error('over');
  const caller = new AbortController();
  const asleep = systemClock.sleep(60_000, caller.signal);
  caller.abort(reason);
  t.is(await t.throwsAsync(asleep), reason);
  t.is(await t.throwsAsync(systemClock.sleep(0, caller.signal)), reason);
  t.is(getEventListeners(caller.signal, 'abort').length, 0);
});

test('sleep: a reason that is no error arrives as it is', async (t) => {
  const caller = new AbortController();
  const asleep = systemClock.sleep(60_000, caller.signal);
  caller.abort('changed');
  const outcome = await asleep.then(
    () => 'woke',
    (why: unknown) => why,
  );
  t.is(outcome, 'changed');
});
