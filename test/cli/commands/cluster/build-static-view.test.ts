import test from 'ava';
import { buildStaticView, hasStaticProblem } from '../../../../cli/commands/cluster/build-static-view.ts';
import { unknown } from '../../../../inspection/node/known.ts';
import { factsOf, KEPT_SAMPLE, SAMPLE } from './sample.ts';

const KEPT = buildStaticView(factsOf(KEPT_SAMPLE));
const HOUR_MS = 3_600_000;

test('buildStaticView: counts claims and EIPs by phase, records of Pods left out', (t) => {
  t.deepEqual(KEPT.claims, { total: 6, byPhase: { Bound: 1, Retained: 3, Pending: 1, Failed: 1 } });
  t.deepEqual(KEPT.eips, { total: 3, byPhase: { Bound: 1, Retained: 1, Failed: 1 } });
});

test('buildStaticView: lists what waits with its reason, what failed first, then the oldest', (t) => {
  t.deepEqual(
    KEPT.waiting.map(({ kind, key, phase, ageMs }) => [kind, key, phase, ageMs]),
    [
      ['EIP', 'shop/db-6', 'Failed', 2 * HOUR_MS],
      ['address', 'shop/db-5', 'Failed', HOUR_MS / 30],
      ['address', 'shop/db-4', 'Pending', 0.75 * HOUR_MS],
    ],
  );
  t.regex(KEPT.waiting[0]?.message ?? '', /AddressQuotaLimitExceeded/);
});

test('buildStaticView: counts addresses without a Pod by node and subnet, with the oldest', (t) => {
  t.deepEqual(KEPT.idle, [
    { node: '', subnetId: 'subnet-2', count: 1, oldestMs: HOUR_MS },
    { node: 'n2', subnetId: 'subnet-2', count: 2, oldestMs: 48 * HOUR_MS },
  ]);
});

test('buildStaticView: tells whole ENIs in use from spare and kept ones, those on no instance too', (t) => {
  t.deepEqual(KEPT.exclusive, [
    { node: '', inUse: 0, spare: 0, kept: 1 },
    { node: 'n1', inUse: 2, spare: 1, kept: 1 },
  ]);
});

test('buildStaticView: tells nothing of what may not be read', (t) => {
  const nothing = unknown('may not list', '');
  const facts = factsOf(KEPT_SAMPLE);
  const { claims, idle, exclusive } = buildStaticView({ ...facts, claims: nothing, vips: nothing, pods: nothing });
  t.is(claims, undefined);
  t.is(idle, undefined);
  t.deepEqual(exclusive.at(-1), { node: 'n1', inUse: undefined, spare: undefined, kept: 1 });
});

test('hasStaticProblem: is true of what failed, and of what waits for longer than the grace', (t) => {
  const pending = { ...KEPT, waiting: KEPT.waiting.filter(({ phase }) => phase === 'Pending') };
  t.true(hasStaticProblem(KEPT, 24 * HOUR_MS));
  t.true(hasStaticProblem(pending, HOUR_MS / 2));
  t.false(hasStaticProblem(pending, HOUR_MS));
  t.false(hasStaticProblem(buildStaticView(factsOf(SAMPLE)), 0));
});
