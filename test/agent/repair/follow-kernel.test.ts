import test from 'ava';
import { followKernel } from '../../../agent/repair/follow-kernel.ts';
import type { Monitor } from '../../../netlink/monitor.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A loop whose subscriptions end when the test says so. */
function scene() {
  const clock = new VirtualClock();
  const opened: { isClosed: boolean }[] = [];
  const kicks: string[] = [];
  let refuses = false;
  let ending = Promise.withResolvers<void>();
  const open = (): Monitor => {
    if (refuses) throw new Error('EMFILE');
    const monitor = {
      isClosed: false,
      close() {
        this.isClosed = true;
        ending.resolve();
      },
    };
    opened.push(monitor);
    ending = Promise.withResolvers<void>();
    // What the loop reads of it is a matter of the loop.
    return monitor as unknown as Monitor;
  };
  const loop = { follow: () => ending.promise, kick: (cause: string) => kicks.push(cause) };
  const follower = followKernel({ background: runInBackground, open, loop, clock, random: () => 0, log: silentLogger });
  return {
    ...{ clock, opened, kicks, follower },
    fail: () => ending.reject(new Error('a message that cannot be read')),
    setRefuses: (value: boolean) => {
      refuses = value;
    },
  };
}

test('followKernel: subscribes again when a subscription ends, with a pass for what was missed', async (t) => {
  const { clock, opened, kicks, fail, follower } = scene();
  t.is(opened.length, 1);
  fail();
  await clock.advance(100);
  t.deepEqual(
    opened.map(({ isClosed }) => isClosed),
    [true, false],
  );
  t.deepEqual(kicks, ['notifications were lost']);
  fail();
  await clock.advance(199);
  t.is(opened.length, 2, 'the second time it waits longer');
  await clock.advance(1);
  t.is(opened.length, 3);
  // One that held counts as good.
  await clock.advance(60_000);
  fail();
  await clock.advance(100);
  t.is(opened.length, 4);
  follower.close();
  await clock.advance(60_000);
  t.is(opened.length, 4);
  t.true(opened.every(({ isClosed }) => isClosed));
});

test('followKernel: goes on trying while the kernel refuses, and ends when it is closed', async (t) => {
  const { clock, opened, kicks, fail, setRefuses, follower } = scene();
  setRefuses(true);
  fail();
  await clock.advance(60_000);
  t.is(opened.length, 1);
  t.deepEqual(kicks, []);
  setRefuses(false);
  await clock.advance(10_000);
  t.is(opened.length, 2);
  t.is(kicks.length, 1);
  setRefuses(true);
  fail();
  await clock.advance(1_000);
  follower.close();
  setRefuses(false);
  await clock.advance(60_000);
  t.is(opened.length, 2);
});
