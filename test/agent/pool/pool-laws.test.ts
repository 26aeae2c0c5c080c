import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { type ClaimMark, claimKey, type Supply } from '../../../agent/journal/supply.ts';
import { applySupply } from '../../../agent/pool/apply-supply.ts';
import { leaseStatic } from '../../../agent/pool/lease-static.ts';
import { adopt, adoptCooldowns, forceCool, lease, release, restore, tick, withdraw } from '../../../agent/pool/pool.ts';
import { EMPTY_POOL, type LeaseRequest, type LeaseResult, type PoolState } from '../../../agent/pool/pool-state.ts';
import type { Family } from '../../../dataplane/ip-prefix.ts';
import { assertLaw } from '../../support/law.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from './supply-sample.ts';

// Random histories over a small world, so that everything meets everything: 3 ENIs, 10 addresses, 6 sandboxes.
const COOLDOWN_MS = 100;
const IPS = [
  '10.0.0.1',
  '10.0.0.2',
  '10.0.0.3',
  '10.0.0.4',
  '10.0.0.5',
  '10.0.0.6',
  'fd00::1',
  'fd00::2',
  'fd00::3',
  'fd00::4',
];
const ENIS = ['eni-a', 'eni-b', 'eni-c'];

const NAMES = ['web-0', 'web-1'];
const UIDS = ['u0', 'u1', 'u2'];

type World = { state: PoolState; nowMs: number; supply: Supply };
type Event = { readonly name: string; readonly run: (world: World) => World };

const arbMark: fc.Arbitrary<ClaimMark | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom(...NAMES).map((name) => ({ namespace: 'ns', name })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...UIDS))
      .map(([name, uid]) => ({ namespace: 'ns', name, uid })),
  },
);

const arbSupply: fc.Arbitrary<Supply> = fc
  .record({
    homes: fc.array(fc.constantFrom<string | undefined>(...ENIS, undefined), {
      minLength: IPS.length,
      maxLength: IPS.length,
    }),
    releasing: fc.array(
      fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
      { minLength: IPS.length, maxLength: IPS.length },
    ),
    marks: fc.array(arbMark, { minLength: IPS.length, maxLength: IPS.length }),
    draining: fc.subarray(ENIS, { maxLength: 1 }),
    detached: fc.subarray(ENIS, { maxLength: 1 }),
    generation: fc.integer({ min: 1, max: 2 }),
    epoch: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ homes, releasing, marks, draining, detached, generation, epoch }) =>
    sampleSupply(
      ENIS.map((eniId) =>
        sampleEni(eniId, [], {
          draining: draining.includes(eniId),
          attached: !detached.includes(eniId),
          addresses: IPS.flatMap((ip, i) =>
            homes[i] === eniId
              ? [
                  sampleAddress(ip, {
                    state: releasing[i] ? 'releasing' : 'assigned',
                    assignmentId: `as${generation}-${ip}`,
                    ...(marks[i] === undefined ? {} : { claim: marks[i] }),
                  }),
                ]
              : [],
          ),
        }),
      ),
      epoch,
    ),
  );

const arbKey = fc.integer({ min: 0, max: 5 }).map((n) => `c${n}/eth0`);
const arbFamilies = fc.constantFrom<readonly Family[]>([4], [6], [4, 6]);
const arbIps = fc.subarray(IPS);

const arbEvent: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(arbKey, arbFamilies).map(([key, families]) => leaseEvent('lease', key, families, lease)),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(arbKey, arbFamilies)
      .map(([key, families]) => leaseEvent('forceCool', key, families, forceCool)),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(arbKey, fc.constantFrom(...NAMES), fc.constantFrom(...UIDS), arbFamilies)
      .map(([key, name, uid, families]) => leaseKeptEvent(key, name, uid, families)),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(arbKey, fc.constantFrom(undefined, ...NAMES))
      .map(([key, name]) => releaseEvent(key, name === undefined ? undefined : `ns/${name}`)),
  },
  { weight: 2, arbitrary: arbSupply.map(supplyEvent) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 150 }).map(passEvent) },
  { weight: 1, arbitrary: fc.integer({ min: -1000, max: -1 }).map(passEvent) },
  {
    weight: 1,
    arbitrary: arbIps.map((ips) => named(`withdraw ${ips}`, (w) => ({ ...w, state: withdraw(w.state, ips).state }))),
  },
  {
    weight: 1,
    arbitrary: arbIps.map((ips) => named(`restore ${ips}`, (w) => ({ ...w, state: restore(w.state, ips).state }))),
  },
  { weight: 1, arbitrary: fc.constant(named('restart', restarted)) },
);

function named(name: string, run: (world: World) => World): Event {
  return { name, run };
}

function leaseEvent(
  name: string,
  key: string,
  families: readonly Family[],
  step: (state: PoolState, request: LeaseRequest) => { state: PoolState; result: LeaseResult },
): Event {
  return named(`${name} ${key} ${families}`, (world) => {
    const { state, result } = step(world.state, { key, families, nowMs: world.nowMs });
    if (result.kind === 'exhausted') {
      assertThat(state === world.state, 'an exhausted pool changes nothing');
      if (name === 'lease')
        assertThat(!ENIS.some((eni) => couldServe(world, eni, families)), 'exhausted although an ENI could serve');
    } else if (result.isNew) assertFairLease(world, families, result);
    return { ...world, state };
  });
}

/** A kept address goes to the Pod that its mark names, as soon as it may, and to no other. */
function leaseKeptEvent(key: string, name: string, uid: string, families: readonly Family[]): Event {
  return named(`leaseKept ${key} for ${name} ${uid} ${families}`, (world) => {
    const pod = { namespace: 'ns', name, uid };
    const { state, result } = leaseStatic(world.state, { key, pod, families });
    const [main] = [...families].sort();
    if (result.kind === 'waits') {
      assertThat(state === world.state, 'one that waits changes nothing');
      const could = [...world.state.addresses.values()].filter(
        ({ ip, family }) => family === main && isGivable(world, ip, name, uid),
      );
      assertThat(could.length === 0, `waits ("${result.reason}") although ${could[0]?.ip} is there`);
    } else if (result.isNew) {
      assertThat(result.addresses[0]?.family === main, 'the first family is there');
      assertThat(new Set(result.addresses.map((a) => a.eniId)).size === 1, 'all of one ENI');
      for (const { ip } of result.addresses) {
        assertThat(isGivable(world, ip, name, uid), `${ip} was not to be given to ${name} ${uid}`);
      }
    }
    return { ...world, state };
  });
}

function isGivable({ state }: World, ip: string, name: string, uid: string): boolean {
  const address = state.addresses.get(ip);
  if (address?.claim === undefined || address.leaseKey !== undefined) return false;
  const isMarked = address.claim.name === name && address.claim.uid === uid;
  const rests = address.coolUntilMs !== undefined && address.podKey !== `ns/${name}`;
  const isThere = address.supplyState === 'assigned' && !address.offered && !rests;
  return isMarked && isThere && state.enis.get(address.eniId)?.serves === true;
}

function couldServe(world: World, eni: string, families: readonly Family[]): boolean {
  if (world.state.enis.get(eni)?.serves !== true) return false;
  const free = [...world.state.addresses.values()].filter((a) => a.eniId === eni && a.state === 'free' && !a.offered);
  return families.every((family) => free.some((a) => a.family === family));
}

function assertFairLease(
  world: World,
  families: readonly Family[],
  result: Extract<LeaseResult, { kind: 'leased' }>,
): void {
  const { addresses, forced } = result;
  assertThat(
    addresses.map((a) => a.family).join() === [...families].sort().join(),
    'one address per family, IPv4 first',
  );
  assertThat(new Set(addresses.map((a) => a.eniId)).size === 1, 'all of one ENI');
  for (const given of addresses) {
    const before = world.state.addresses.get(given.ip);
    assertThat(before?.state === 'free' || before?.state === 'cooling', `${given.ip} was ${before?.state}`);
    assertThat(before?.supplyState === 'assigned' && !before.offered, `${given.ip} was not to be given`);
    assertThat(before?.claim === undefined, `${given.ip} is kept for somebody`);
    assertThat(world.state.enis.get(given.eniId)?.serves === true, `${given.eniId} does not serve`);
    const stillCools = before?.state === 'cooling' && (before.coolUntilMs ?? 0) > world.nowMs;
    assertThat(stillCools === forced.includes(given.ip), `${given.ip} still cools: ${stillCools}, forced: ${forced}`);
  }
  if (families.length === 1) assertOldest(world, families, result);
}

/** With one family: no address that could have been given on the same ENI (forced: on any) was freed earlier. */
function assertOldest(
  world: World,
  families: readonly Family[],
  result: Extract<LeaseResult, { kind: 'leased' }>,
): void {
  const given = result.addresses[0];
  const isForced = result.forced.length > 0;
  for (const other of world.state.addresses.values()) {
    const isEligible =
      families.includes(other.family) &&
      other.supplyState === 'assigned' &&
      !other.offered &&
      other.claim === undefined &&
      world.state.enis.get(other.eniId)?.serves;
    if (!isEligible || other.ip === given?.ip) continue;
    if (isForced) assertThat(other.state !== 'free', `forced ${given?.ip} while ${other.ip} was free`);
    const isRival = isForced ? other.state === 'cooling' : other.state === 'free' && other.eniId === given?.eniId;
    if (isRival)
      assertThat((other.freedAtMs ?? -Infinity) >= (given?.freedAtMs ?? -Infinity), `${other.ip} was freed before`);
  }
}

function releaseEvent(key: string, podKey: string | undefined): Event {
  return named(`release ${key} of ${podKey}`, (world) => {
    const held = world.state.leases.get(key) ?? [];
    const named = podKey === undefined ? {} : { podKey };
    const { state, result } = release(world.state, { key, ...named, nowMs: world.nowMs, cooldownMs: COOLDOWN_MS });
    const cooling = result.kind === 'released' ? result.cooldowns.map((cooldown) => cooldown.ip) : [];
    assertThat(cooling.join() === held.join(), `released ${cooling} of ${held}`);
    return { ...world, state };
  });
}

function supplyEvent(supply: Supply): Event {
  return named(`supply ${JSON.stringify(supply)}`, (world) => {
    const { state, result } = applySupply(world.state, supply);
    if (result.kind === 'distrusted') {
      assertThat(
        state === world.state && supply.epoch < world.state.epoch,
        'distrust changes nothing and has a reason',
      );
      return world;
    }
    const again = applySupply(state, supply).state;
    assertThat(isDeepStrictEqual([...again.addresses], [...state.addresses]), 'applying twice is applying once');
    for (const [key, ips] of world.state.leases) assertThat(state.leases.get(key) === ips, `${key} lost its lease`);
    return { ...world, state, supply };
  });
}

function passEvent(ms: number): Event {
  return named(`pass ${ms}`, (world) => {
    const nowMs = world.nowMs + ms;
    const { state, result } = tick(world.state, nowMs);
    for (const ip of result)
      assertThat((world.state.addresses.get(ip)?.coolUntilMs ?? Infinity) <= nowMs, `${ip} freed too early`);
    return { ...world, state, nowMs };
  });
}

/** A restart knows leases and cooldowns from the journal and the supply from its source: nothing else. */
function restarted(world: World): World {
  const leases = [...world.state.leases].map(([key, ips]) => {
    const eniId = world.state.addresses.get(ips[0] ?? '')?.eniId ?? '';
    return sampleLease(key.split('/')[0] ?? '', eniId, ips);
  });
  const cooldowns = [...world.state.addresses.values()].flatMap((a) =>
    a.freedAtMs !== undefined && a.coolUntilMs !== undefined
      ? [
          {
            ip: a.ip,
            family: a.family,
            eniId: a.eniId,
            assignmentId: a.assignmentId,
            freedAtMs: a.freedAtMs,
            coolUntilMs: a.coolUntilMs,
            cooldownMs: COOLDOWN_MS,
          },
        ]
      : [],
  );
  const adopted = adopt(applySupply(EMPTY_POOL, world.supply).state, leases);
  assertThat(adopted.result.length === 0, `conflicts ${JSON.stringify(adopted.result)}`);
  const { state } = adoptCooldowns(adopted.state, cooldowns);
  for (const { ip, coolUntilMs } of cooldowns)
    assertThat(state.addresses.get(ip)?.coolUntilMs === coolUntilMs, `${ip} forgot its cooldown`);
  for (const [key, ips] of world.state.leases)
    assertThat(state.leases.get(key)?.join() === ips.join(), `${key} lost its lease`);
  return { ...world, state };
}

function assertInvariants({ state, nowMs, supply }: World): void {
  const owned = [...state.leases].flatMap(([key, ips]) => ips.map((ip) => [ip, key] as const));
  assertThat(new Set(owned.map(([ip]) => ip)).size === owned.length, 'an address has two owners');
  const byState = [...state.addresses.values()].flatMap((a) =>
    a.leaseKey === undefined ? [] : [[a.ip, a.leaseKey] as const],
  );
  assertThat(String(owned.toSorted()) === String(byState.toSorted()), 'leases and addresses disagree');
  const listed = new Set(supply.enis.flatMap((eni) => eni.addresses.map((a) => a.ip)));
  for (const a of state.addresses.values()) {
    assertThat((a.state === 'leased') === (a.leaseKey !== undefined), `${a.ip}: ${a.state} and owner ${a.leaseKey}`);
    const isForOwn = a.claim !== undefined && a.supplyState !== 'missing' && a.podKey === claimKey(a.claim);
    const isOut = a.state === 'withdrawn';
    assertThat(
      a.coolUntilMs === undefined ? a.state !== 'cooling' : isOut || (a.state === 'cooling') !== isForOwn,
      `${a.ip}: ${a.state} and deadline ${a.coolUntilMs}`,
    );
    if (a.state === 'free' || a.state === 'kept') {
      assertThat(a.supplyState === 'assigned' && !a.offered, `${a.ip} is ${a.state} but ${a.supplyState}`);
      assertThat((a.state === 'kept') === (a.claim !== undefined), `${a.ip} is ${a.state} with ${a.claim?.name}`);
    }
    if (a.coolUntilMs !== undefined)
      assertThat((a.coolUntilMs ?? 0) <= nowMs + 2 * COOLDOWN_MS + 1000, `${a.ip} cools forever`);
    if (a.state !== 'leased' && a.state !== 'cooling') assertThat(listed.has(a.ip), `${a.ip} came from nowhere`);
  }
  for (const ip of listed) assertThat(state.addresses.has(ip), `${ip} was lost`);
}

function assertThat(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

test('pool: keeps its invariants over random histories', async (t) => {
  const arbHistory = fc.array(arbEvent, { minLength: 1, maxLength: 60 });
  const first = sampleSupply([sampleEni('eni-a', IPS.slice(0, 3)), sampleEni('eni-b', IPS.slice(3))], 1);
  await assertLaw(
    t,
    () =>
      fc.property(arbHistory, (history) => {
        let world: World = { state: applySupply(EMPTY_POOL, first).state, nowMs: 10_000, supply: first };
        for (const event of history) {
          try {
            world = event.run(world);
            assertInvariants(world);
          } catch (error) {
            throw new Error(`after ${history.map((e) => e.name).join('; ')} at ${event.name}`, { cause: error });
          }
        }
      }),
    { numRuns: 2_000 },
  );
});

test('pool: gives every address back to use when all leases end and time passes', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.array(arbEvent, { maxLength: 40 }), (history) => {
        let world: World = { state: EMPTY_POOL, nowMs: 10_000, supply: sampleSupply([]) };
        for (const event of history) world = event.run(world);
        let { state } = world;
        for (const key of [...state.leases.keys()])
          state = release(state, { key, nowMs: world.nowMs, cooldownMs: COOLDOWN_MS }).state;
        // Twice: the first tick by an earlier clock only moves deadlines near.
        state = tick(state, world.nowMs).state;
        state = tick(state, world.nowMs + COOLDOWN_MS).state;
        state = restore(state, IPS).state;
        const assigned = world.supply.enis.flatMap((eni) =>
          eni.addresses.filter((a) => a.state === 'assigned').map((a) => a.ip),
        );
        const free = [...state.addresses.values()]
          .filter((a) => a.state === 'free' || a.state === 'kept')
          .map((a) => a.ip);
        assertThat(free.toSorted().join() === assigned.toSorted().join(), `free ${free}, assigned ${assigned}`);
      }),
    { numRuns: 1_000 },
  );
});
