import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { Slices } from '../../runtime/slices.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('Slices: however many callers have long work at once, each has a turn of the event loop', async (t) => {
  const slices = new Slices(systemClock);
  let turn = 0;
  const turns: number[] = [];
  let isOver = false;
  const loop = (): void => {
    turn += 1;
    if (!isOver) setImmediate(loop);
  };
  setImmediate(loop);
  const work = async (): Promise<void> => {
    await slices.next();
    turns.push(turn);
    const endMs = systemClock.monotonicMs() + 15;
    while (systemClock.monotonicMs() < endMs);
  };
  await Promise.all(Array.from({ length: 20 }, work));
  isOver = true;
  t.is(new Set(turns).size, 20, `${turns}`);
});

test('Slices: short work is not divided, and callers go on in order', async (t) => {
  const clock = new VirtualClock();
  const slices = new Slices(clock);
  const done: number[] = [];
  const work = async (at: number): Promise<void> => {
    await slices.next();
    done.push(at);
  };
  await clock.run(Promise.all(Array.from({ length: 100 }, (_, at) => work(at))));
  t.deepEqual(
    done,
    Array.from({ length: 100 }, (_, at) => at),
  );
  t.is(clock.monotonicMs(), 0);
});
