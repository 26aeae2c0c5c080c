// Long: it learns 70,000 flows, one call of bpf(2) each.
import test from 'ava';
import type { FrameSpec } from './frame.ts';
import { ProgramBench, TC_ACT_REDIRECT, V4 } from './program-bench.ts';

test('more flows than the map holds: some are not learned, and none is wrong', (t) => {
  using bench = new ProgramBench();
  const flowOf = (n: number): FrameSpec => ({ ...V4, sport: 1 + (n % 60_000), dport: 1 + Math.floor(n / 60_000) });
  const COUNT = 70_000;
  for (let n = 0; n < COUNT; n++) bench.learn(flowOf(n));
  t.is(bench.arrive(flowOf(COUNT - 1)).action, TC_ACT_REDIRECT);
  const kept = bench.programs.flows().length;
  t.true(kept > 60_000 && kept <= 65_536, `${kept} flows`);
});
