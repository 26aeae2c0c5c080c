import test from 'ava';
import { benchContainer, creatorPid } from '../../../../cli/commands/bench/bench-pods.ts';
import { computeFigures, renderBench } from '../../../../cli/commands/bench/run-bench.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { runCaptured } from '../../agent/captured.ts';

test('computeFigures: quantiles are values that were measured', (t) => {
  const durations = Array.from({ length: 100 }, (_, index) => 100 - index);
  t.deepEqual(computeFigures(durations), { count: 100, medianMs: 50, p90Ms: 90, p99Ms: 99, maxMs: 100 });
  t.deepEqual(computeFigures([7]), { count: 1, medianMs: 7, p90Ms: 7, p99Ms: 7, maxMs: 7 });
  t.is(computeFigures([]), undefined);
});

test('benchContainer: tells who made it, and nobody else’s name does', (t) => {
  t.is(creatorPid(benchContainer(4711, 'abc')), 4711);
  for (const name of ['cni-1234', 'tkeenibench-', 'tkeenibench-x-y', 'a1b2c3d4']) {
    t.is(creatorPid(name), undefined);
  }
});

for (const width of [80, 160]) {
  test(`renderBench: fits ${width} columns`, (t) => {
    const figures = { count: 10, medianMs: 6.2, p90Ms: 8, p99Ms: 31, maxMs: 31 };
    const report = { add: figures, del: figures, routes: 1_000, routeDump: figures, routeReplace: figures };
    const cost = { routeAddMs: 0.004, routeDeleteMs: 0.003, agentCpuMs: 5, ownCpuMs: 420 };
    const text = renderBench({ ...report, ...cost }, { width, isColored: false });
    t.true(text.split('\n').every((line) => line.length <= width));
    matchesGolden(t, import.meta.url, `bench-${width}.txt`, text);
  });
}

test('bench: refuses numbers without a meaning, and an unprivileged user', async (t) => {
  for (const flag of ['--count=-1', '--count=1.5', '--count=100000', '--routes=1e9']) {
    t.is((await runCaptured(['bench', flag])).code, 64, flag);
  }
  const { code, stderr } = await runCaptured(['bench'], { isRoot: false });
  t.is(code, 2);
  t.regex(stderr, /root/);
});
