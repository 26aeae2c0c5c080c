import test from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../support/law.ts';
import {
  DISTURBANCE_NAMES,
  LAST_KILL_OF_FIRST,
  LAST_LEADER_KILL,
  LAST_LOSS,
  nameOf,
  type PlanSpec,
  planDisturbances,
} from './schedule.ts';

const SPEC: PlanSpec = { seed: 1, lastsMs: 300_000, nodes: ['n1', 'n2', 'n3'], pods: [5, 40] };
const seeds = fc.nat(1_000_000);

test('planDisturbances: same seed, same plan; another seed, another plan', (t) => {
  t.deepEqual(planDisturbances(SPEC), planDisturbances(SPEC));
  t.notDeepEqual(planDisturbances(SPEC), planDisturbances({ ...SPEC, seed: 2 }));
});

test('planDisturbances: in order, after the calm, within the time', async (t) => {
  await assertLaw(t, () =>
    fc.property(seeds, fc.integer({ min: 10_000, max: 500_000 }), (seed, lastsMs) => {
      const times = planDisturbances({ ...SPEC, seed, lastsMs }).map(({ atMs }) => atMs);
      return (
        times.every((atMs) => atMs >= 3_000 && atMs <= lastsMs) &&
        times.every((atMs, index) => atMs >= (times[index - 1] ?? 0))
      );
    }),
  );
});

test('planDisturbances: every kind comes in five minutes, whatever the seed', async (t) => {
  const all = new Set(planDisturbances(SPEC).map(({ what }) => what.kind));
  t.is(all.size, 17);
  await assertLaw(t, () =>
    fc.property(seeds, (seed) => {
      const kinds = new Set(planDisturbances({ ...SPEC, seed }).map(({ what }) => what.kind));
      return [...all].every((kind) => kinds.has(kind));
    }),
  );
});

test('DISTURBANCE_NAMES: has each name that a long plan has, and no other', (t) => {
  const planned = new Set(planDisturbances({ ...SPEC, lastsMs: 20_000_000 }).map(({ what }) => nameOf(what)));
  t.deepEqual([...planned].sort(), [...DISTURBANCE_NAMES].sort());
});

test('planDisturbances: leaves the first agent, the last leader and late sandboxes alone when it says so', async (t) => {
  await assertLaw(t, () =>
    fc.property(seeds, (seed) => {
      const plan = planDisturbances({ ...SPEC, seed });
      const isAfter = (share: number) => plan.filter(({ atMs }) => atMs >= share * SPEC.lastsMs);
      return (
        isAfter(LAST_KILL_OF_FIRST).every(({ what }) => what.kind !== 'kill-agent' || what.node !== 'n1') &&
        isAfter(LAST_LEADER_KILL).every(({ what }) => what.kind !== 'kill-leader') &&
        isAfter(LAST_LOSS).every(({ what }) => what.kind !== 'lose-sandbox')
      );
    }),
  );
});
