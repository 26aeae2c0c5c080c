// Long: it learns 70,000 flows, one call of bpf(2) each.
import test from 'ava';
import { decodeFlow, FLOWS_4 } from '../../../dataplane/fast-path/flow-layout.ts';
import type { FrameSpec } from './frame.ts';
import { ProgramBench, TC_ACT_REDIRECT, V4 } from './program-bench.ts';

const COUNT = 70_000;
const FLOWS_OF_A_PORT = 60_000;

const flowOf = (n: number): FrameSpec => ({
  ...V4,
  sport: 1 + (n % FLOWS_OF_A_PORT),
  dport: 1 + Math.floor(n / FLOWS_OF_A_PORT),
});

test('more flows than the map holds: the least used go, and none is wrong', (t) => {
  using bench = new ProgramBench();
  for (let n = 0; n < COUNT; n++) bench.learn(flowOf(n));
  t.is(bench.arrive(flowOf(COUNT - 1)).action, TC_ACT_REDIRECT);
  // Read from the map itself: `flows` leaves out those whose second is over, and learning takes several.
  const kept = bench
    .map(FLOWS_4)
    .entries()
    .map((entry) => decodeFlow(4, entry));
  t.true(kept.length > 60_000 && kept.length <= FLOWS_4.maxEntries, `${kept.length} flows`);
  const wrong = kept.filter(({ src, dst, sport, dport, iif, oif }) => {
    const n = sport - 1 + (dport - 1) * FLOWS_OF_A_PORT;
    return src !== V4.src || dst !== V4.dst || n < 0 || n >= COUNT || iif !== bench.iif || oif !== bench.oif;
  });
  t.deepEqual(wrong, []);
});
