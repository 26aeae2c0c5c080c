import test from 'ava';
import { judgeLife, type ProcessSample, quarterOf, sampleProcess } from './process-watch.ts';

const BOUNDS = { rssMiB: 200, growthMiB: 40, fdGrowth: 10 };

function life(samples: readonly (readonly [atMs: number, rssMiB: number, fds: number])[]) {
  const all: readonly ProcessSample[] = samples.map(([atMs, rssMiB, fds]) => ({ atMs, rssMiB, fds }));
  return { name: 'agent n1', pid: 7, samples: all };
}

test('sampleProcess: reads this process, and nothing of one that is gone', (t) => {
  const sample = sampleProcess(process.pid, 5);
  t.is(sample?.atMs, 5);
  t.true((sample?.rssMiB ?? 0) > 10 && (sample?.fds ?? 0) > 2);
  t.is(sampleProcess(2 ** 22 + 1, 0), undefined);
});

test('judgeLife: counts growth from a quarter of the life, not from its start', (t) => {
  const one = life([
    [0, 50, 10],
    [25_000, 90, 30],
    [100_000, 120, 35],
  ]);
  t.is(quarterOf(one)?.rssMiB, 90);
  t.deepEqual(judgeLife(one, BOUNDS), []);
});

test('judgeLife: tells of memory and descriptors that grew, and of a peak', (t) => {
  const samples = [
    [0, 50, 10],
    [25_000, 90, 30],
    [50_000, 210, 30],
    [100_000, 131, 41],
  ] as const;
  t.deepEqual(judgeLife(life(samples), BOUNDS), [
    'agent n1 (pid 7): 210 MiB resident, more than 200',
    'agent n1 (pid 7): grew from 90 to 131 MiB',
    'agent n1 (pid 7): grew from 30 to 41 descriptors',
  ]);
});

test('judgeLife: says nothing of growth in a life that was short', (t) => {
  t.deepEqual(
    judgeLife(
      life([
        [0, 50, 10],
        [30_000, 150, 60],
      ]),
      BOUNDS,
    ),
    [],
  );
});
