import test from 'ava';
import { decodeMessage, encodeMessage } from '../../../../agent/api/codec.ts';
import { POOL_REPLY, SUMMARY_REPLY, type SummaryReplyInit } from '../../../../agent/api/ops-messages.ts';
import { buildAgentPool } from '../../../../cli/commands/pool/build-agent-pool.ts';
import { buildTopView, type TopSample, withSample } from '../../../../cli/commands/top/build-top-view.ts';
import { type FrameOptions, renderBar, renderTop } from '../../../../cli/commands/top/render-top.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { POOL_SAMPLE, SUMMARY_SAMPLE } from '../../agent/samples.ts';

function sample(atMs: number, changes: SummaryReplyInit = {}): TopSample {
  const summary = decodeMessage(SUMMARY_REPLY, encodeMessage(SUMMARY_REPLY, { ...SUMMARY_SAMPLE, ...changes }));
  const pool = decodeMessage(POOL_REPLY, encodeMessage(POOL_REPLY, POOL_SAMPLE));
  return { atMs, summary, pool: buildAgentPool(pool, summary.nodeName) };
}

const FRAME: FrameOptions = {
  columns: 80,
  rows: 24,
  isColored: false,
  sort: 'ENI',
  isPaused: false,
  unixMs: Date.UTC(2026, 0, 2, 3, 4, 5),
  problem: '',
  hasKeys: true,
};

const LATER = sample(30_000, {
  calls: [
    {
      verb: 'add',
      total: 180,
      failed: 3,
      buckets: [
        { upToUs: 5_000, count: 150 },
        { upToUs: 10_000, count: 25 },
        { upToUs: 25_000, count: 5 },
        { upToUs: 0, count: 0 },
      ],
    },
    { verb: 'del', total: 80, buckets: [{ upToUs: 5_000, count: 80 }] },
  ],
  drift: 5,
  repaired: 6,
});

for (const [columns, rows] of [
  [80, 24],
  [160, 40],
] as const) {
  test(`renderTop: fills ${columns} x ${rows} and no more`, (t) => {
    const lines = renderTop(buildTopView(LATER, sample(0)), { ...FRAME, columns, rows });
    t.is(lines.length, rows);
    t.true(lines.every((line) => [...line].length <= columns));
    matchesGolden(t, import.meta.url, `top-${columns}.txt`, `${lines.join('\n')}\n`);
  });
}

test('renderTop: calls asked for only what the object has', (t) => {
  const linesOf = (asked: number) => {
    const { pool, ...rest } = sample(0);
    const view = buildTopView({ ...rest, pool: { ...pool, demand: 10, asked } }, undefined);
    return renderTop(view, { ...FRAME, columns: 120 }).join('\n');
  };
  t.regex(linesOf(12), /^ +wanted 10, asked for 12, kept warm/m);
  t.regex(linesOf(10), /^ +asked for 10, kept warm/m);
});

test('renderTop: fits any terminal, and lets the keys be seen', (t) => {
  for (let columns = 20; columns < 200; columns += 13) {
    for (let rows = 3; rows < 60; rows += 5) {
      const lines = renderTop(buildTopView(LATER, sample(0)), { ...FRAME, columns, rows });
      t.is(lines.length, rows);
      t.true(
        lines.every((line) => [...line].length <= columns),
        `${columns} x ${rows}:\n${lines.join('\n')}`,
      );
      t.regex(lines.at(-1) ?? '', /^q quit/);
    }
  }
});

test('buildTopView: rates and latencies are of the window', (t) => {
  const { calls, trouble, windowMs } = buildTopView(LATER, sample(0));
  t.is(windowMs, 30_000);
  const [add, del] = calls;
  t.is(add?.perSecond, 2);
  t.is(add?.failed, 1);
  t.is(add?.latency?.count, 60);
  t.is(del?.perSecond, 0);
  t.is(del?.latency, undefined);
  t.deepEqual(trouble.drift, { total: 5, rise: 2 });
});

test('buildTopView: figures of an agent that restarted are those since its start', (t) => {
  const fresh = sample(30_000, { uptimeMs: 5_000, drift: 1, calls: [{ verb: 'add', total: 3, failed: 0 }] });
  const { calls, trouble } = buildTopView(fresh, sample(0));
  t.is(calls[0]?.perSecond, 0.1);
  t.is(trouble.drift.rise, 1);
});

test('withSample: forgets what is older than the window', (t) => {
  const samples = [0, 10, 20].reduce<readonly TopSample[]>((kept, atMs) => withSample(kept, sample(atMs), 15), []);
  t.deepEqual(
    samples.map(({ atMs }) => atMs),
    [10, 20],
  );
});

test('renderBar: shows one of many, and never more than its width', (t) => {
  const parts = [
    { count: 1, char: 'u' },
    { count: 0, char: 'c' },
    { count: 999, char: 'f' },
  ];
  t.is(renderBar(parts, 1_000, 10, false), 'ufffffffff');
  t.is(renderBar([{ count: 5, char: 'u' }], 10, 10, false), 'uuuuu     ');
  t.is(renderBar([{ count: 0, char: 'u' }], 0, 4, false), '    ');
});
