// Random nodes live through the calls of ipamd, each in a cloud of its own.
import test from 'ava';
import fc from 'fast-check';
import { findEniStays } from '../../../../cli/commands/cluster/build-eni-rows.ts';
import type { ClusterNec } from '../../../../cli/commands/cluster/cluster-facts.ts';
import type { Stay } from '../../../../cli/commands/pool/stays.ts';
import { type CallFate, NecWorld } from '../../../ipamd/support/nec-world.ts';
import { assertLaw } from '../../../support/law.ts';

type Move =
  | { readonly kind: 'demand'; readonly count: number; readonly inUse: number }
  | { readonly kind: 'step'; readonly fate: CallFate }
  | { readonly kind: 'limit'; readonly enis: number | undefined };

const MOVE: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .constantFrom<CallFate>('done', 'done', 'refused', 'lost-after')
      .map((fate): Move => ({ kind: 'step', fate })),
  },
  {
    weight: 3,
    arbitrary: fc.record({ count: fc.nat(8), inUse: fc.nat(6) }).map((want): Move => ({ kind: 'demand', ...want })),
  },
  { weight: 1, arbitrary: fc.constantFrom(undefined, 1, 2).map((enis): Move => ({ kind: 'limit', enis })) },
);
const HISTORY = fc.array(MOVE, { maxLength: 40, size: 'max' });

function play(world: NecWorld, move: Move): void {
  if (move.kind === 'demand') world.demand(Math.max(move.count, move.inUse), move.inUse);
  else if (move.kind === 'limit') world.maxRouteENI = move.enis;
  else world.step(move.fate);
}

/** Tells the reasons of each ENI of a world whose agent has acted on all that there is, and whose Pods have what it does not offer. */
function staysOf({ spec, status }: NecWorld): ReadonlyMap<string, readonly Stay['reason'][]> {
  const offered = new Set((spec.releasableIPs ?? []).map(({ ip, assignmentID }) => `${ip} ${assignmentID}`));
  const held = (status.eniInfos ?? [])
    .flatMap(({ addresses = [] }) => addresses)
    .filter(({ ip, assignmentID, state }) => state === 'Assigned' && !offered.has(`${ip} ${assignmentID}`));
  const pods = new Map(held.slice(0, spec.desiredRouteENIIP).map(({ ip }, index) => [ip, `shop/cart-${index}`]));
  const nec: ClusterNec = {
    ...{
      key: 'n1',
      uid: 'uid-1',
      createdMs: 0,
      deletionRequestedMs: undefined,
      finalizers: [],
      faults: [],
      settings: [],
    },
    spec: { ...spec, observedSupplyEpoch: status.supplyEpoch ?? 0 },
    status,
  };
  const stays = findEniStays(nec, pods, 0);
  return new Map([...stays].map(([eniId, found]) => [eniId, found.map(({ reason }) => reason)]));
}

function drainingOf({ eniInfos = [] }: NecWorld['status']): readonly string[] {
  return eniInfos.flatMap(({ eniID, draining }) => (draining === true ? [eniID] : []));
}

/** Reasons that keep all of an ENI. */
const HOLDING: readonly Stay['reason'][] = ['in-use', 'static', 'agent-behind', 'not-offered', 'offer-unconfirmed'];
/** Reasons of which one is there before ipamd unassigns an address. */
const GOING: readonly Stay['reason'][] = ['offered', 'releasing', 'draining'];

test('findEniStays: what ipamd takes next had no reason to stay', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, (history) => {
        const world = new NecWorld();
        for (const move of history) {
          play(world, move);
          const decision = world.decide();
          if (decision.kind !== 'begin') continue;
          const { action, eniID = '' } = decision.intent;
          const before = world.status.eniInfos?.find((eni) => eni.eniID === eniID);
          // What this very decision marks or unmarks as draining shows as it was before.
          const isMarked = drainingOf(decision.status).join() !== drainingOf(world.status).join();
          if (before?.state !== 'Attached' || isMarked) continue;
          const reasons = staysOf(world).get(eniID) ?? [];
          if (action === 'UnassignPrivateIpAddresses') t.true(reasons.some((reason) => GOING.includes(reason)));
          const isWhole = action === 'DetachNetworkInterface' || action === 'DeleteNetworkInterface';
          if (isWhole)
            t.deepEqual(
              reasons.filter((reason) => HOLDING.includes(reason)),
              [],
            );
        }
      }),
    { numRuns: 500 },
  );
});

/** More than any state of so small a node needs. */
const MOST_STEPS = 120;

test('findEniStays: each ENI of a node at rest has a reason', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, fc.nat(8), fc.nat(8), (history, count, inUse) => {
        const world = new NecWorld();
        for (const move of history) play(world, move);
        const wanted = Math.max(count, inUse);
        const settle = (held: () => number) => {
          for (let step = 0; step < MOST_STEPS; step++) {
            world.demand(wanted, held());
            if (!world.step('done')) return;
          }
        };
        settle(() => world.goal());
        const stays = staysOf(world);
        t.is(stays.size, world.status.eniInfos?.length ?? 0);
        for (const reasons of stays.values()) t.false(reasons.length === 0 || reasons.includes('unknown'));
      }),
    { numRuns: 500 },
  );
});
