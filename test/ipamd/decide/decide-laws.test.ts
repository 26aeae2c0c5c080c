import test from 'ava';
import fc from 'fast-check';
import { decideAllocatable } from '../../../ipamd/decide/decide-allocatable.ts';
import { evaluateDrift } from '../../../ipamd/decide/evaluate-drift.ts';
import { rebuildStatus } from '../../../ipamd/decide/rebuild-status.ts';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { type CallFate, NecWorld } from '../support/nec-world.ts';

type Move =
  | { readonly kind: 'demand'; readonly count: number; readonly inUse: number }
  | { readonly kind: 'step'; readonly fate: CallFate }
  | { readonly kind: 'limit'; readonly enis: number | undefined }
  | { readonly kind: 'groups'; readonly groups: readonly string[] | undefined }
  | { readonly kind: 'forget-ids' }
  | { readonly kind: 'leave' | 'stay' };

const STEP = fc
  .constantFrom<CallFate>('done', 'done', 'done', 'refused', 'lost-before', 'lost-after')
  .map((fate): Move => ({ kind: 'step', fate }));
const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: STEP },
  {
    weight: 3,
    arbitrary: fc.record({ count: fc.nat(8), inUse: fc.nat(6) }).map((want): Move => ({ kind: 'demand', ...want })),
  },
  { weight: 1, arbitrary: fc.constantFrom(undefined, 0, 1, 2).map((enis): Move => ({ kind: 'limit', enis })) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(undefined, ['sg-a'], ['sg-b', 'sg-a'])
      .map((groups): Move => ({ kind: 'groups', groups })),
  },
  { weight: 1, arbitrary: fc.constantFrom<Move>({ kind: 'leave' }, { kind: 'stay' }, { kind: 'forget-ids' }) },
);
const HISTORY = fc.array(MOVE, { maxLength: 40, size: 'max' });

function play(world: NecWorld, move: Move): void {
  switch (move.kind) {
    case 'demand':
      world.demand(move.count, move.inUse);
      return;
    case 'step':
      world.step(move.fate);
      return;
    case 'limit':
      world.maxRouteENI = move.enis;
      return;
    case 'groups':
      world.groups = move.groups;
      return;
    case 'forget-ids':
      // Offers of assignments that are over.
      world.spec = {
        ...world.spec,
        releasableIPs: (world.spec.releasableIPs ?? []).map((offer) => ({ ...offer, assignmentID: 'of-before' })),
      };
      return;
    case 'leave':
    case 'stay':
      world.leaving = move.kind === 'leave' ? 'drain' : 'no';
  }
}

/** More than any state of so small a node needs. */
const MOST_STEPS = 120;

/** A cloud that does everything and an agent that offers all it can spare: steps until nothing changes any more. */
function settle(world: NecWorld): number {
  for (let step = 0; step < MOST_STEPS; step++) {
    const wanted = world.spec.desiredRouteENIIP ?? 0;
    world.demand(wanted, world.leaving === 'no' ? world.goal() : 0);
    if (!world.step('done')) return step;
  }
  return MOST_STEPS;
}

test('decideNode: never breaks a rule, whatever happens to calls, demand and limits', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, (history) => {
        const world = new NecWorld();
        for (const move of history) play(world, move);
        t.deepEqual(world.broken, []);
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});

test('decideNode: comes to rest with what is wanted, whatever happened before', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, fc.nat(8), (history, count) => {
        const world = new NecWorld();
        for (const move of history) play(world, move);
        world.leaving = 'no';
        world.demand(count, 0);
        t.true(settle(world) < MOST_STEPS);
        t.deepEqual(world.broken, []);
        t.is(world.have(), world.goal());
        t.deepEqual(world.status.intents ?? [], []);
        t.true(['idle', 'blocked'].includes(world.decide().kind));
        t.deepEqual(evaluateDrift(world.status, world.sight()), []);
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});

for (const leaving of ['drain', 'force'] as const) {
  test(`decideNode: gives everything back when the node leaves (${leaving})`, async (t) => {
    await assertLaw(
      t,
      (t) =>
        fc.property(HISTORY, (history) => {
          const world = new NecWorld();
          for (const move of history) play(world, move);
          world.leaving = leaving;
          settle(world);
          t.is(world.decide().kind, 'released');
          t.is(world.cloud.size, 0);
          t.deepEqual(world.broken, []);
        }),
      { numRuns: IS_LONG ? 1_000 : 200 },
    );
  });
}

test('rebuildStatus: knows all and nothing but what the cloud holds, under new ids, when an old state was restored', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, HISTORY, (before, after) => {
        const world = new NecWorld();
        for (const move of before) play(world, move);
        const old = world.status;
        for (const move of after) play(world, move);
        const observed = (world.status.supplyEpoch ?? 0) + 1;
        const known = new Set(
          (old.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []).map((one) => one.assignmentID),
        );
        const rebuilt = rebuildStatus(
          { ...old, instanceID: 'ins-1' },
          { observedSupplyEpoch: observed },
          world.sight(),
          world.ids,
        );
        t.true((rebuilt.supplyEpoch ?? 0) > observed);
        t.deepEqual(rebuilt.intents, []);
        t.deepEqual(
          (rebuilt.eniInfos ?? []).map((eni) => [eni.eniID, (eni.addresses ?? []).map(({ ip }) => ip).sort()]).sort(),
          [...world.cloud.values()].map((eni) => [eni.eniID, [...eni.ips].sort()]).sort(),
        );
        const ids = (rebuilt.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []).map((one) => one.assignmentID);
        t.deepEqual(
          ids.filter((id) => known.has(id)),
          [],
        );
        t.deepEqual(evaluateDrift(rebuilt, world.sight()), []);
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});

test('decideAllocatable: tells what a node has in the end that asks for all it can get of nearly empty subnets', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, fc.nat(9), fc.nat(9), (history, ofA, ofB) => {
        const world = new NecWorld();
        for (const move of history) play(world, move);
        world.leaving = 'no';
        settle(world);
        world.free = { 'subnet-a': ofA, 'subnet-b': ofB };
        world.isCounting = true;
        const allocatable = decideAllocatable(world.view(), world.status);
        for (let step = 0; step < MOST_STEPS; step++) {
          world.demand(99, 99);
          if (!world.step('done')) break;
        }
        t.deepEqual(world.broken, []);
        t.is(allocatable?.max, world.have());
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});
