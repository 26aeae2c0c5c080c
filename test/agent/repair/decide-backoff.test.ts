import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import {
  type BackoffLimits,
  type Contest,
  DEFAULT_BACKOFF_LIMITS,
  decideBackoff,
  isOver,
} from '../../../agent/repair/decide-backoff.ts';
import { assertLaw } from '../../support/law.ts';

const LIMITS: BackoffLimits = {
  peaceMs: 100,
  freeRepairs: 2,
  firstMs: 20,
  longestMs: 100,
  calmMs: 1_000,
  alarmCount: 4,
  windowMs: 10_000,
};

/** Makes the decisions about one object, one after the other. */
function decisionsAt(timesMs: readonly number[], isForeign = true): readonly string[] {
  let contest: Contest | undefined;
  return timesMs.map((nowMs) => {
    const decision = decideBackoff(contest, { changedAtMs: isForeign ? nowMs : undefined, nowMs }, LIMITS);
    contest = decision.contest;
    return `${decision.verdict}${decision.isAlarm ? ' alarm' : ''}`;
  });
}

type Row = {
  readonly what: string;
  readonly timesMs: readonly number[];
  readonly isForeign?: boolean;
  readonly decisions: readonly string[];
};

const ROWS: readonly Row[] = [
  { what: 'a change is repaired at once', timesMs: [0], decisions: ['repair'] },
  {
    what: 'a change that comes again at once is repaired, then waits, and the wait is alarmed once',
    timesMs: [0, 1, 2, 3, 4],
    decisions: ['repair', 'repair', 'repair', 'hold alarm', 'hold'],
  },
  {
    what: 'the end of a wait is a repair, and the next wait is twice as long',
    timesMs: [0, 1, 2, 3, 23, 24, 63, 64],
    decisions: ['repair', 'repair', 'repair', 'hold alarm', 'repair', 'hold', 'hold', 'repair'],
  },
  {
    what: 'a wait is at most the longest',
    timesMs: [0, 1, 2, 3, 23, 24, 64, 65, 145, 146, 246, 247, 347],
    decisions: [
      ...['repair', 'repair', 'repair', 'hold alarm', 'repair', 'hold', 'repair', 'hold', 'repair', 'hold'],
      ...['repair', 'hold', 'repair'],
    ],
  },
  {
    what: 'peace takes the back-off back',
    timesMs: [0, 1, 2, 3, 23, 223, 224, 225],
    decisions: ['repair', 'repair', 'repair', 'hold alarm', 'repair', 'repair', 'repair', 'hold'],
  },
  {
    what: 'a slow opponent is repaired at once forever, and alarmed once',
    timesMs: [0, 200, 400, 600, 800, 1_000],
    decisions: ['repair', 'repair', 'repair', 'repair alarm', 'repair', 'repair'],
  },
  {
    what: 'what the kernel does itself is no opponent',
    timesMs: [0, 1, 2, 3, 4, 5, 6, 7, 8],
    isForeign: false,
    decisions: Array.from({ length: 9 }, () => 'repair'),
  },
  {
    what: 'the next fight is alarmed again',
    timesMs: [0, 1, 2, 3, 20_000, 20_001, 20_002, 20_003],
    decisions: ['repair', 'repair', 'repair', 'hold alarm', 'repair', 'repair', 'repair', 'hold alarm'],
  },
];

for (const { what, timesMs, isForeign, decisions } of ROWS) {
  test(`decideBackoff: ${what}`, (t) => {
    t.deepEqual(decisionsAt(timesMs, isForeign), decisions);
  });
}

/** An opponent that undoes each repair `afterMs` later; passes come at once. Returns when repairs were made. */
function repairsAgainst(afterMs: () => number, untilMs: number, limits: BackoffLimits): readonly number[] {
  const repairsMs: number[] = [];
  let contest: Contest | undefined;
  let nowMs = 0;
  while (nowMs < untilMs) {
    const decision = decideBackoff(contest, { changedAtMs: nowMs, nowMs }, limits);
    contest = decision.contest;
    if (decision.verdict === 'repair') {
      repairsMs.push(nowMs);
      nowMs += afterMs();
    } else {
      nowMs = contest.heldUntilMs;
    }
  }
  return repairsMs;
}

const gaps = (times: readonly number[]): readonly number[] =>
  times.slice(1).map((at, index) => at - (times[index] ?? 0));

test('decideBackoff: whoever is slower than the peace never makes it wait', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(fc.array(fc.integer({ min: 250, max: 5_000 }), { minLength: 1, maxLength: 60 }), (standMs) => {
      let at = 0;
      const repairs = repairsAgainst(() => standMs[at++ % standMs.length] ?? 250, 60_000, DEFAULT_BACKOFF_LIMITS);
      t.deepEqual(
        gaps(repairs).filter((gapMs) => !standMs.includes(gapMs)),
        [],
      );
    }),
  );
});

test('decideBackoff: at most a few repairs in ten seconds against whoever undoes them at once, and one at least', async (t) => {
  await assertLaw(t, (t: ExecutionContext) =>
    fc.property(fc.integer({ min: 1, max: 100 }), (standMs) => {
      const repairs = repairsAgainst(() => standMs, 60_000, DEFAULT_BACKOFF_LIMITS);
      const inTenSeconds = (fromMs: number) => repairs.filter((at) => at >= fromMs && at < fromMs + 10_000).length;
      t.true(inTenSeconds(0) <= 16, `${inTenSeconds(0)} in the first`);
      for (const fromMs of [10_000, 30_000, 49_000]) {
        t.true(inTenSeconds(fromMs) <= 6, `${inTenSeconds(fromMs)} from ${fromMs}`);
        t.true(inTenSeconds(fromMs) >= 2);
      }
    }),
  );
});

test('decideBackoff: every wait is within the limits and ends with a repair', async (t) => {
  const change = fc.record({ waitMs: fc.integer({ min: 0, max: 1_000 }), isForeign: fc.boolean() });
  await assertLaw(t, (t) =>
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      let contest: Contest | undefined;
      let nowMs = 0;
      for (const { waitMs, isForeign } of changes) {
        nowMs += waitMs;
        const decision = decideBackoff(contest, { changedAtMs: isForeign ? nowMs : undefined, nowMs }, LIMITS);
        ({ contest } = decision);
        if (decision.verdict === 'repair') continue;
        const leftMs = contest.heldUntilMs - nowMs;
        t.true(leftMs > 0 && leftMs <= LIMITS.longestMs);
        t.is(decideBackoff(contest, { changedAtMs: nowMs, nowMs: contest.heldUntilMs }, LIMITS).verdict, 'repair');
        t.false(isOver(contest, nowMs, LIMITS));
      }
    }),
  );
});

test('decideBackoff: what counts is how long a repair stood, and not how late a pass comes', (t) => {
  let contest: Contest | undefined;
  const verdicts = [0, 1_000, 2_000, 3_000].map((nowMs) => {
    const decision = decideBackoff(contest, { changedAtMs: nowMs - 990, nowMs }, LIMITS);
    contest = decision.contest;
    return decision.verdict;
  });
  t.deepEqual(verdicts, ['repair', 'repair', 'repair', 'hold']);
});
