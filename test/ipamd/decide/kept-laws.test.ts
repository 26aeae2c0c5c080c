import test from 'ava';
import fc from 'fast-check';
import type { ClaimRequest } from '../../../ipamd/decide/claim-request.ts';
import { evaluateDrift } from '../../../ipamd/decide/evaluate-drift.ts';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { type CallFate, MOST, NecWorld } from '../support/nec-world.ts';

type Move =
  | { readonly kind: 'step'; readonly fate: CallFate }
  | { readonly kind: 'demand'; readonly count: number; readonly inUse: number }
  | { readonly kind: 'limit'; readonly enis: number | undefined }
  | { readonly kind: 'wish'; readonly claim: number; readonly want: ClaimRequest['goal'] | 'moves-here' };

/** Of two subnets; the third's address is any. */
const IPS = ['10.0.1.201', '10.0.2.201', undefined, '10.0.1.202'] as const;

const STEP = fc
  .constantFrom<CallFate>('done', 'done', 'done', 'refused', 'lost-before', 'lost-after')
  .map((fate): Move => ({ kind: 'step', fate }));
const WISH = fc
  .record({
    claim: fc.nat(IPS.length - 1),
    want: fc.constantFrom('here', 'here', 'keep', 'elsewhere', 'free', 'moves-here'),
  })
  .map((wish): Move => ({ kind: 'wish', ...wish }) as Move);
const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: STEP },
  { weight: 3, arbitrary: WISH },
  {
    weight: 2,
    arbitrary: fc.record({ count: fc.nat(7), inUse: fc.nat(3) }).map((want): Move => ({ kind: 'demand', ...want })),
  },
  { weight: 1, arbitrary: fc.constantFrom(undefined, 1, 2).map((enis): Move => ({ kind: 'limit', enis })) },
);
const HISTORY = fc.array(MOVE, { maxLength: 50, size: 'max' });

const OTHER_ENI = 'eni-other';

function keyOf(claim: number): string {
  return `ns/web-${claim}`;
}

function play(world: NecWorld, move: Move): void {
  switch (move.kind) {
    case 'step':
      world.step(move.fate);
      return;
    case 'demand':
      world.demand(move.count, move.inUse);
      return;
    case 'limit':
      world.maxRouteENI = move.enis;
      return;
    case 'wish':
      wish(world, move.claim, move.want);
  }
}

/** What the controller of claims says when a Pod of the name comes, goes, or the claim ends. */
function wish(world: NecWorld, claim: number, goal: ClaimRequest['goal'] | 'moves-here'): void {
  const key = keyOf(claim);
  const before = world.claims?.get(key);
  // A claim that comes after one that ended is another.
  const known = before?.goal === 'free' && goal !== 'free' ? undefined : before?.ip;
  const ip = known ?? world.marks().get(key)?.ip ?? IPS[claim];
  const head = { key, mode: 'route-eni' as const, ...(ip === undefined ? {} : { ip }) };
  // The cloud may have given an address that was let go to an ENI as its primary one.
  const isThere =
    ip !== undefined && [...world.cloud.values()].some((eni) => eni.primaryIP === ip || eni.ips.includes(ip));
  if (goal === 'moves-here' && ip !== undefined && !isThere) world.elsewhere.set(ip, OTHER_ENI);
  const isMoved = ip !== undefined && world.elsewhere.has(ip);
  const source = { nodeName: 'n2', eniId: OTHER_ENI, isAttached: true, isReleased: true };
  const wanted: ClaimRequest =
    goal === 'here' || goal === 'moves-here'
      ? { ...head, goal: 'here', podUid: `uid-${claim}`, ...(isMoved ? { source } : {}) }
      : { ...head, goal, ...(goal === 'elsewhere' ? { willMigrate: true } : {}) };
  world.claims = new Map([...(world.claims ?? []), [key, wanted]]);
}

/** The controller of claims sees what has moved, and what the cloud has chosen. */
function look(world: NecWorld): void {
  for (const [key, { goal }] of world.claims ?? []) {
    wish(world, Number(key.slice('ns/web-'.length)), goal);
  }
}

/** No ENI that will do has room, and there can be no other: kept addresses hold them all. */
function isFull(world: NecWorld, one: ClaimRequest | undefined): boolean {
  const enis = (world.status.eniInfos ?? []).filter((eni) => eni.state === 'Attached');
  const fitting = enis.filter(({ subnetID }) => one?.ip === undefined || subnetID === subnetOf(one.ip));
  const isHeld = enis.every(({ addresses = [] }) => addresses.some(({ claim }) => claim !== undefined));
  const hasRoom = fitting.some(({ addresses = [] }) => addresses.length < MOST.secondaryIpsPerEni);
  return isHeld && !hasRoom && enis.length === MOST.secondaryEnis;
}

function subnetOf(ip: string): string {
  return ip.startsWith('10.0.1.') ? 'subnet-a' : 'subnet-b';
}

const MOST_STEPS = 200;

function settle(world: NecWorld): number {
  for (let step = 0; step < MOST_STEPS; step++) {
    look(world);
    world.demand(world.spec.desiredRouteENIIP ?? 0, world.goal());
    if (!world.step('done')) return step;
  }
  return MOST_STEPS;
}

/** Nobody but its claim's Pod, or nobody, has a kept address; each is in one place, and counted. */
function judge(world: NecWorld): readonly string[] {
  const faults: string[] = [...world.broken];
  // What comes of a wish is in the next write.
  const decision = world.decide();
  const { eniInfos = [] } = 'status' in decision ? decision.status : world.status;
  const addresses = eniInfos.flatMap((eni) => eni.addresses ?? []);
  for (const { ip, claim, state } of addresses) {
    const owner = world.reserved().get(ip);
    const key = claim === undefined ? undefined : `${claim.namespace}/${claim.name}`;
    if (owner !== undefined && key !== owner && state === 'Assigned') faults.push(`${ip} of ${owner} is ${key}'s`);
    if (state === 'Releasing' && claim?.uid !== undefined) faults.push(`${ip} is given back and has a Pod`);
  }
  return faults;
}

test('decideNode: breaks no rule about kept addresses, whatever happens to calls, wishes, demand and limits', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, (history) => {
        const world = new NecWorld();
        for (const move of history) {
          play(world, move);
          t.deepEqual(judge(world), []);
        }
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});

test('decideNode: has every kept address that fits in the end, gives back what ends, and the pool has the rest', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, fc.nat(7), (history, count) => {
        const world = new NecWorld();
        for (const move of history) play(world, move);
        world.maxRouteENI = undefined;
        world.demand(0, 0);
        t.true(settle(world) < MOST_STEPS);
        t.deepEqual(judge(world), []);
        t.deepEqual(world.status.intents ?? [], []);
        t.deepEqual(evaluateDrift(world.status, world.sight()), []);
        const marks = world.marks();
        for (const [key, { goal, podUid }] of world.claims ?? []) {
          const mark = marks.get(key);
          if (goal === 'here' && mark?.claim?.uid !== podUid) t.true(isFull(world, world.claims?.get(key)), key);
          else if (goal === 'here') t.is(mark?.claim?.uid, podUid, key);
          else t.is(mark?.claim?.uid, undefined, key);
          if (goal === 'free') t.is(mark, undefined, key);
        }
        const wished = [...(world.claims?.values() ?? [])].filter(({ goal }) => goal === 'here');
        t.true((world.status.staticRouteENIIPs ?? 0) >= wished.length);
        world.demand(count, 0);
        t.true(settle(world) < MOST_STEPS);
        t.deepEqual(judge(world), []);
        t.is(world.have(), world.goal());
        // The cloud may have given the pool one that is kept: it is marked.
        t.true(world.marks().size >= marks.size);
      }),
    { numRuns: IS_LONG ? 1_000 : 200 },
  );
});

for (const leaving of ['drain', 'force'] as const) {
  test(`decideNode: keeps nothing of a node that leaves (${leaving}), kept addresses included`, async (t) => {
    await assertLaw(
      t,
      (t) =>
        fc.property(HISTORY, (history) => {
          const world = new NecWorld();
          for (const move of history) play(world, move);
          world.leaving = leaving;
          for (const [key, one] of world.claims ?? []) {
            const { podUid: _gone, source: _other, ...rest } = one;
            world.claims = new Map([
              ...(world.claims ?? []),
              [key, { ...rest, goal: one.goal === 'free' ? 'free' : 'keep' }],
            ]);
          }
          settle(world);
          t.is(world.decide().kind, 'released');
          t.is(world.cloud.size, 0);
          t.deepEqual(judge(world), []);
        }),
      { numRuns: IS_LONG ? 500 : 100 },
    );
  });
}
