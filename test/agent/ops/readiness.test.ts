import test from 'ava';
import { followReadiness, livenessOf } from '../../../agent/ops/readiness.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('livenessOf: says nothing between passes and while one takes its time', (t) => {
  t.is(livenessOf(undefined, 1_000_000), undefined);
  t.is(livenessOf(1_000_000, 1_119_999), undefined);
});

test('livenessOf: says since when a pass hangs', (t) => {
  t.is(livenessOf(1_000_000, 1_125_000), 'a repair pass has hung for 125 s');
});

test('followReadiness: tells each turn once, and has what the node serves published at once', async (t) => {
  const clock = new VirtualClock();
  const state = new NodeState(clock);
  const down = new AbortController();
  t.teardown(() => down.abort());
  const turns: boolean[] = [];
  let isReady = false;
  const told: number[] = [];
  const watch = async (): Promise<void> => {
    while (!down.signal.aborted) {
      await state.demandChanged.wait(3_600_000, down.signal);
      told.push(clock.monotonicMs());
    }
  };
  void watch();
  void followReadiness(state, () => isReady, down.signal, {
    changed: (now) => turns.push(now),
  });
  await clock.advance(10_000);
  t.deepEqual(turns, [false]);
  const before = told.length;
  isReady = true;
  state.changed.notify();
  await clock.advance(10_000);
  t.deepEqual(turns, [false, true]);
  t.deepEqual(told.slice(before), [10_000]);
});

test('followReadiness: notices within a second what nobody told', async (t) => {
  const clock = new VirtualClock();
  const state = new NodeState(clock);
  const down = new AbortController();
  t.teardown(() => down.abort());
  const turns: boolean[] = [];
  let isReady = true;
  void followReadiness(state, () => isReady, down.signal, {
    changed: (now) => turns.push(now),
  });
  await clock.advance(5_500);
  isReady = false;
  await clock.advance(1_000);
  t.deepEqual(turns, [true, false]);
});
