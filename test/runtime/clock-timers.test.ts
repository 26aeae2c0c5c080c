import test from 'ava';
import { inTime, intervalOn, timerOn } from '../../runtime/clock-timers.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('timerOn, intervalOn: call when their clock says, and not after their end', async (t) => {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const note = (what: string) => () => calls.push(`${what} at ${clock.monotonicMs()}`);
  timerOn(clock, note('once'), 250);
  timerOn(clock, note('never'), 20).cancel();
  timerOn(clock, note('at no time'), Number.POSITIVE_INFINITY);
  const interval = intervalOn(clock, note('again'), 100);
  await clock.advance(250);
  interval.cancel();
  interval.cancel();
  await clock.advance(1_000);
  t.deepEqual(calls, ['again at 100', 'again at 200', 'once at 250']);
});

test('timerOn: a timer that ends while others of its moment run is not called', async (t) => {
  const clock = new VirtualClock();
  let count = 0;
  const first = timerOn(clock, () => second.cancel(), 10);
  const second = timerOn(clock, () => count++, 10);
  await clock.advance(20);
  t.is(count, 0);
  first.cancel();
});

test('intervalOn: one that ends in its own call is over, and none is faster than its clock', async (t) => {
  const clock = new VirtualClock();
  let count = 0;
  const interval = intervalOn(
    clock,
    () => {
      count++;
      if (count === 3) interval.cancel();
    },
    0,
  );
  await clock.advance(10);
  t.is(count, 3);
});

test('inTime: the signal aborts after the time, or as the outer one does; then nothing waits', async (t) => {
  const clock = new VirtualClock();
  const forEver = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const late = inTime(clock, 500, forEver);
  const lateError = t.throwsAsync(late, { name: 'TimeoutError' });
  await clock.advance(499);
  t.is(await Promise.race([lateError, 'waits']), 'waits');
  await clock.advance(1);
  await lateError;

  const outer = new AbortController();
  const ended = t.throwsAsync(inTime(clock, 500, forEver, outer.signal), { message: 'the agent ends' });
  outer.abort(new Error('the agent ends'));
  await ended;

  t.is(await inTime(clock, 500, async () => 'done'), 'done');
  const kept = await inTime(clock, 500, async (signal) => signal);
  await clock.advance(1_000);
  t.false(kept.aborted, 'the work was done in time');
});
