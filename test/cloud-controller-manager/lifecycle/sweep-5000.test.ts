import test from 'ava';
import { measureSweep } from './measure-sweep.ts';

test('runLifecycleController: 5,000 Nodes that are not ready take 50 calls a sweep, ready ones none', async (t) => {
  const { readyCalls, calls, sweeps } = await measureSweep(5_000);
  t.is(readyCalls, 0);
  t.true(sweeps >= 4);
  t.is(calls, 50);
});
