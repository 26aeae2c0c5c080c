import test from 'ava';
import { floorsOf, judgeLife, type ProcessLife, sampleProcess, tellFloors } from './process-watch.ts';
import { CALM, DISTURBED, LEAKING, type Recorded } from './recorded-lives.ts';
import { BOUNDS } from './report.ts';

const SECOND_MS = 1_000;

/** A life of the agent; `fds` by second, else always ten. */
function life(recorded: readonly Recorded[], fds: (seconds: number) => number = () => 10): ProcessLife {
  const samples = recorded.map(([seconds, rssMiB, anonMiB]) => ({
    ...{ atMs: seconds * SECOND_MS, rssMiB, anonMiB },
    fds: fds(seconds),
  }));
  return { name: 'agent n1', pid: 7, samples };
}

function until(recorded: readonly Recorded[], second: number): readonly Recorded[] {
  return recorded.filter(([seconds]) => seconds <= second);
}

test('sampleProcess: reads this process, and nothing of one that is gone', (t) => {
  const sample = sampleProcess(process.pid, 5);
  t.is(sample?.atMs, 5);
  t.true((sample?.anonMiB ?? 0) > 5 && (sample?.rssMiB ?? 0) > (sample?.anonMiB ?? 0) && (sample?.fds ?? 0) > 2);
  t.is(sampleProcess(2 ** 22 + 1, 0), undefined);
});

test('floorsOf: takes the least of each half, without the first quarter', (t) => {
  const one = life([
    [0, 60, 1],
    [49, 60, 20],
    [50, 60, 40],
    [124, 60, 90],
    [126, 60, 80],
    [199, 60, 41],
    [200, 60, 95],
  ]);
  t.deepEqual(floorsOf(one, 'anonMiB'), { early: 40, late: 41 });
  t.is(tellFloors(floorsOf(one, 'anonMiB')), '40, later 41');
});

test('judgeLife: says nothing of recorded agents that do not leak', (t) => {
  t.deepEqual(judgeLife(life(CALM), BOUNDS.agent), []);
  t.deepEqual(judgeLife(life(DISTURBED), BOUNDS.agent), []);
});

test('judgeLife: says nothing of one that is looked at last amid uncollected garbage', (t) => {
  const [calm, disturbed] = [until(CALM, 201), DISTURBED.slice(0, 30)];
  t.true((calm.at(-1)?.[1] ?? 0) - (calm[8]?.[1] ?? 0) > 30, 'resident memory alone would tell of growth');
  t.deepEqual(judgeLife(life(calm), BOUNDS.agent), []);
  // The same hump at the end of a longer life.
  const longer = disturbed.map(([seconds, ...mib]): Recorded => [seconds * 2, ...mib]);
  t.deepEqual(judgeLife(life(longer), BOUNDS.agent), []);
});

test('judgeLife: tells of a recorded leak', (t) => {
  t.deepEqual(judgeLife(life(LEAKING), { ...BOUNDS.agent, rssMiB: 300 }), [
    'agent n1 (pid 7): anonymous memory rose: 59, later 100 MiB at least',
  ]);
});

test('judgeLife: tells of descriptors that rise, and of a peak', (t) => {
  const rising = life(CALM, (seconds) => 10 + Math.floor(seconds / 5));
  t.deepEqual(judgeLife(rising, { ...BOUNDS.agent, rssMiB: 110 }), [
    'agent n1 (pid 7): 111 MiB resident, more than 110',
    'agent n1 (pid 7): descriptors rose: 21, later 38 at least',
  ]);
  // Children of the moment.
  t.deepEqual(
    judgeLife(
      life(CALM, (seconds) => (seconds % 4 === 0 ? 60 : 10)),
      BOUNDS.agent,
    ),
    [],
  );
});

test('judgeLife: takes a standby of ipamd that becomes the leader, and tells of one that leaks', (t) => {
  // As in a soak with seed 11: 26 to 31 descriptors as standby, 36 to 40 as leader.
  const inherits = (seconds: number): number => (seconds < 200 ? 26 + (seconds % 6) : 36 + (seconds % 5));
  const leaks = (seconds: number): number => inherits(seconds) + Math.floor(seconds / 3);
  t.deepEqual(judgeLife({ ...life(CALM, inherits), name: 'ipamd1' }, BOUNDS.ipamd), []);
  t.regex(judgeLife({ ...life(CALM, leaks), name: 'ipamd1' }, BOUNDS.ipamd).join(), /descriptors rose/);
});

test('judgeLife: says nothing of growth in a life that was short', (t) => {
  t.is(floorsOf(life(until(LEAKING, 160)), 'anonMiB'), undefined);
  t.deepEqual(judgeLife(life(until(LEAKING, 160)), BOUNDS.agent), []);
});
