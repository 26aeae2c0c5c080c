import test from 'ava';
import { WorkQueue } from '../../kube/work-queue.ts';
import { MAX_TIMER_MS, startInterval, startTimer, systemClock, timeoutSignal } from '../../runtime/clock.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const DAY_MS = 86_400_000;

/** Longer than a timer that ends at once takes on a machine under load, shorter than any that is asked for here. */
const LOOK_MS = 100;

test('sleep: an end in weeks, months or never does not come at once', async (t) => {
  const over = new AbortController();
  const delays = [
    MAX_TIMER_MS,
    MAX_TIMER_MS + 1,
    25 * DAY_MS,
    90 * DAY_MS,
    Number.MAX_SAFE_INTEGER,
    Number.POSITIVE_INFINITY,
  ];
  const woke: number[] = [];
  const sleeps = delays.map((ms) =>
    systemClock.sleep(ms, over.signal).then(
      () => void woke.push(ms),
      () => undefined,
    ),
  );
  await systemClock.sleep(LOOK_MS);
  t.deepEqual(woke, []);
  over.abort('looked');
  await Promise.all(sleeps);
});

test('sleep: what is past, and what is no number, ends at once, on the clock of the machine and on the virtual one', async (t) => {
  for (const ms of [0, -1, Number.NaN, Number.NEGATIVE_INFINITY]) {
    await t.notThrowsAsync(systemClock.sleep(ms));
    const clock = new VirtualClock();
    await clock.run(clock.sleep(ms));
    t.is(clock.monotonicMs(), 0, String(ms));
  }
});

test('sleep: nobody wakes who sleeps forever on the virtual clock, and others are woken', async (t) => {
  const clock = new VirtualClock();
  let hasWoken = false;
  const forEver = clock.sleep(Number.POSITIVE_INFINITY).then(() => {
    hasWoken = true;
  });
  await clock.run(clock.sleep(90 * DAY_MS), 100 * DAY_MS);
  t.is(clock.monotonicMs(), 90 * DAY_MS);
  t.false(hasWoken);
  await t.throwsAsync(clock.run(forEver), { message: /nobody sleeps/ });
});

// Timers of the process run faster here: no other test runs at the same time.
test.serial('startTimer: counts each piece of a delay that is longer than a timer of Node', async (t) => {
  const real = globalThis.setTimeout;
  const pieces: number[] = [];
  const fast = (run: () => void, ms?: number) => {
    pieces.push(ms ?? 0);
    return real(run, 0);
  };
  globalThis.setTimeout = Object.assign(fast, real) as typeof setTimeout;
  try {
    const ended = Promise.withResolvers<void>();
    startTimer(ended.resolve, 60 * DAY_MS);
    await ended.promise;
    t.is(
      pieces.reduce((sum, ms) => sum + ms, 0),
      60 * DAY_MS,
    );
    t.true(pieces.every((ms) => ms <= MAX_TIMER_MS));
  } finally {
    globalThis.setTimeout = real;
  }
});

test('startTimer, startInterval: nothing is called after the end', async (t) => {
  let count = 0;
  const timers = [
    startTimer(() => count++, 1),
    startInterval(() => count++, 40 * DAY_MS),
    startTimer(() => count++, 1).unref(),
  ];
  for (const timer of timers) timer.cancel();
  await systemClock.sleep(20);
  t.is(count, 0);
  const thrice = Promise.withResolvers<void>();
  const interval = startInterval(() => {
    count += 1;
    if (count === 3) thrice.resolve();
  }, 1);
  await thrice.promise;
  interval.cancel();
  interval.cancel();
  const before = count;
  await systemClock.sleep(20);
  t.is(count, before);
});

test('WorkQueue: a key that is due in 90 days keeps nobody busy', async (t) => {
  const queue = new WorkQueue({ clock: systemClock, random: () => 0 });
  queue.addAfter('kept', 90 * DAY_MS);
  await systemClock.sleep(LOOK_MS);
  t.is(queue.size, 0);
  queue.close();
});

test('timeoutSignal: aborts after its time, also a part of a millisecond, and not at once for weeks or forever', async (t) => {
  const soon = [0, -1, Number.NaN, 0.5, 1.5].map(timeoutSignal);
  const late = [MAX_TIMER_MS, MAX_TIMER_MS + 1, 2 ** 32, 90 * DAY_MS, Number.POSITIVE_INFINITY].map(timeoutSignal);
  await systemClock.sleep(LOOK_MS);
  t.deepEqual(
    soon.map(({ reason }) => reason?.name),
    soon.map(() => 'TimeoutError'),
  );
  t.deepEqual(
    late.map(({ aborted }) => aborted),
    late.map(() => false),
  );
});
