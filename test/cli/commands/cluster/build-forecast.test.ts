import test from 'ava';
import fc from 'fast-check';
import { buildForecast, countCreations, type Growth } from '../../../../cli/commands/cluster/build-forecast.ts';
import { buildSubnetRows } from '../../../../cli/commands/cluster/build-subnet-rows.ts';
import { unknown } from '../../../../inspection/node/known.ts';
import { assertLaw } from '../../../support/law.ts';
import { cloudEni, cloudOf, factsOf, NOW_MS, necObject, SAMPLE } from './sample.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CASES: readonly (readonly [string, number | undefined, Growth, object])[] = [
  ['nothing free', 0, { kind: 'sample', spanMs: MINUTE_MS, added: 0, removed: 0 }, { kind: 'exhausted' }],
  ['nothing moved', 5, { kind: 'sample', spanMs: MINUTE_MS, added: 0, removed: 0 }, { kind: 'not-growing' }],
  ['it shrinks for sure', 5, { kind: 'sample', spanMs: MINUTE_MS, added: 0, removed: 100 }, { kind: 'not-growing' }],
  [
    'it grows for sure',
    600,
    { kind: 'sample', spanMs: MINUTE_MS, added: 100, removed: 0 },
    { kind: 'range', soonestMs: 5 * MINUTE_MS, latestMs: 7.5 * MINUTE_MS },
  ],
  [
    'as much comes as goes',
    600,
    { kind: 'sample', spanMs: MINUTE_MS, added: 50, removed: 50 },
    { kind: 'range', soonestMs: 30 * MINUTE_MS, latestMs: undefined },
  ],
  [
    'nobody knows what is free',
    undefined,
    { kind: 'sample', spanMs: MINUTE_MS, added: 9, removed: 0 },
    { kind: 'unknown' },
  ],
  ['nobody measured', 5, { kind: 'unknown', why: 'no right' }, { kind: 'unknown', why: 'no right' }],
];

for (const [what, free, growth, wanted] of CASES) {
  test(`buildForecast: answers when ${what}`, (t) => {
    t.like(buildForecast(free, growth), wanted);
  });
}

test('buildForecast: never tells a time later than that of the births alone, and always from what', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(
      fc.nat(10_000),
      fc.nat(5_000),
      fc.nat(5_000),
      fc.integer({ min: 1, max: 3_600 }),
      (free, added, removed, seconds) => {
        const spanMs = seconds * 1_000;
        const forecast = buildForecast(free, { kind: 'sample', spanMs, added, removed });
        if (forecast.kind === 'range') {
          t.true(forecast.ground.includes(`${added} came and ${removed} went`));
          t.true(forecast.soonestMs > 0);
          t.true(forecast.latestMs === undefined || forecast.latestMs >= forecast.soonestMs);
          // Measured growth itself lies within the range.
          const middle = added > removed ? (free / (added - removed)) * spanMs : Number.POSITIVE_INFINITY;
          t.true(middle >= forecast.soonestMs - 1 && middle <= (forecast.latestMs ?? Number.POSITIVE_INFINITY) + 1);
        } else {
          t.true(free === 0 ? forecast.kind === 'exhausted' : forecast.kind === 'not-growing' && added <= removed);
        }
      },
    ),
  );
});

test('countCreations: counts each in every window that it is in, and those without a time in none', (t) => {
  const ages = [0, 30 * MINUTE_MS, 2 * HOUR_MS, 48 * HOUR_MS, 400 * HOUR_MS];
  const births = countCreations([...ages.map((age) => NOW_MS - age), 0], NOW_MS);
  t.deepEqual(
    births.map(({ count }) => count),
    [2, 3, 4],
  );
});

test('buildSubnetRows: measures growth between two looks by the addresses themselves', (t) => {
  const cloud = cloudOf([cloudEni(1, [])]);
  const before = factsOf([necObject(1, ['10.0.1.10', '10.0.1.11'])], cloud, NOW_MS - MINUTE_MS);
  const after = factsOf([necObject(1, ['10.0.1.11', '10.0.1.12', '10.0.1.13'])], cloud);
  const [row] = buildSubnetRows(after, before);
  t.is(row?.ours, 4);
  t.like(row?.forecast, { kind: 'range', ground: '2 came and 1 went within 60 s' });
});

test('buildSubnetRows: says nothing of the future without records and Pods, nor of what is free without the cloud', (t) => {
  const facts = factsOf(SAMPLE);
  const blind = { ...facts, vips: unknown('no right', ''), pods: unknown('no right', '') };
  for (const { free, used, total, forecast } of buildSubnetRows(blind)) {
    t.deepEqual({ free, used, total }, { free: undefined, used: undefined, total: 253 });
    t.is(forecast.kind, 'unknown');
  }
});
