import test from 'ava';
import fc from 'fast-check';
import type { Offer } from '../../../agent/journal/journal-content.ts';
import type { ClaimMark, Supply } from '../../../agent/journal/supply.ts';
import { applySupply } from '../../../agent/pool/apply-supply.ts';
import { leaseStatic } from '../../../agent/pool/lease-static.ts';
import { adopt, adoptOffers, lease, release, restore, withdraw } from '../../../agent/pool/pool.ts';
import { EMPTY_POOL, type PoolState } from '../../../agent/pool/pool-state.ts';
import { decidePublication, foreignOffers } from '../../../agent/supply/decide-publication.ts';
import type { AgentSpec, ObservedNec } from '../../../agent/supply/publication.ts';
import { assertLaw } from '../../support/law.ts';
import { sampleEni, sampleLease } from '../pool/supply-sample.ts';

// A small world: one object in an API server that guards writes, an agent that may crash at any step and whose writes may
// arrive late, an ipamd that takes back what is offered and gives new, some of it kept for Pods of one name, and Pods that come
// and go.

type Address = {
  readonly ip: string;
  readonly eniId: string;
  readonly assignmentId: string;
  readonly state: 'assigned' | 'releasing';
  readonly claim?: ClaimMark;
};
type Nec = {
  readonly version: number;
  readonly spec: ObservedNec['spec'];
  readonly epoch: number;
  readonly addresses: readonly Address[];
};
type Put = { readonly on: number; readonly spec: AgentSpec; readonly toRestore: readonly string[] };
type World = {
  /** Every version that ever was: reads may be stale. */
  history: Nec[];
  /** The highest version that the running agent has seen: what it handles never goes back. */
  seen: number;
  pool: PoolState;
  journal: {
    life: string;
    offers: Map<string, Offer>;
    leases: Map<string, readonly string[]>;
    supply: Supply | undefined;
  };
  inFlight: Put[];
  nowMs: number;
  lastPacedMs: number;
  nextId: number;
};

const ENIS = ['eni-a', 'eni-b'];
const IPS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.1.1', '10.0.1.2', '10.0.1.3'];
const KEPT_AT_FIRST: ReadonlyMap<string, ClaimMark> = new Map([
  ['10.0.0.1', { namespace: 'ns', name: 'web-0' }],
  ['10.0.1.1', { namespace: 'ns', name: 'web-1' }],
]);
const WARM = { min: 0, max: 1, isQuickRelease: true };
const BARE: ObservedNec['spec'] = {
  desired: undefined,
  releasable: [],
  observedEpoch: undefined,
  readyResources: [],
  life: undefined,
};

function newest(world: World): Nec {
  const nec = world.history.at(-1);
  if (nec === undefined) throw new Error('there is always one');
  return nec;
}

function write(world: World, change: Partial<Nec>): void {
  const before = newest(world);
  world.history.push({ ...before, ...change, version: before.version + 1 });
}

function seenOf(nec: Nec): ObservedNec {
  return { spec: nec.spec, supplyEpoch: nec.epoch, addresses: new Map(nec.addresses.map((one) => [one.ip, one])) };
}

function supplyOf(nec: Nec): Supply {
  const enis = ENIS.map((eniId) =>
    sampleEni(eniId, [], {
      addresses: nec.addresses
        .filter((address) => address.eniId === eniId)
        .map(({ eniId: _eni, ...address }) => ({ ...address, family: 4 })),
    }),
  );
  return { nodeName: 'n1', epoch: nec.epoch, enis, warm: WARM };
}

/** The agent takes in a version: offers that are in no journal count, before anybody gets their addresses. */
function take(world: World, nec: Nec): void {
  if (nec.spec.life !== world.journal.life) return;
  const supply = supplyOf(nec);
  const step = applySupply(world.pool, supply, nec.spec.observedEpoch);
  world.pool = step.state;
  if (step.result.kind === 'distrusted') return;
  world.journal.supply = supply;
  const foreign = foreignOffers(world.pool, world.journal.offers, seenOf(nec));
  for (const offer of foreign) world.journal.offers.set(offer.ip, offer);
  world.pool = withdraw(
    world.pool,
    foreign.map(({ ip }) => ip),
  ).state;
}

function look(world: World, lag: number): void {
  const index = Math.max(0, world.history.length - 1 - lag);
  const nec = world.history[index];
  if (nec === undefined || nec.version < world.seen) return;
  world.seen = nec.version;
  take(world, nec);
}

/** Decides and journals; returns the write, not sent yet. */
function publish(world: World, waiting: number): Put | undefined {
  const nec = world.history.find(({ version }) => version === world.seen);
  if (nec === undefined) return undefined;
  const decision = decidePublication({
    pool: world.pool,
    offers: world.journal.offers,
    nec: seenOf(nec),
    warm: WARM,
    outside: { waiting, floor: 0 },
    pacing: { nowMs: world.nowMs, lastReleaseMs: world.lastPacedMs, isQuick: true },
    readyResources: [],
    life: world.journal.life,
  });
  for (const { ip } of decision.toErase) world.journal.offers.delete(ip);
  for (const offer of decision.toOffer) world.journal.offers.set(offer.ip, offer);
  world.pool = withdraw(
    world.pool,
    decision.toOffer.map(({ ip }) => ip),
  ).state;
  if (decision.isPaced) world.lastPacedMs = world.nowMs;
  if (!decision.isDue) {
    assertThat(decision.toRestore.length === 0, 'what goes back into use needs a write');
    return undefined;
  }
  return { on: nec.version, spec: decision.spec, toRestore: decision.toRestore.map(({ ip }) => ip) };
}

/** The API server takes a write, or refuses it: guarded; a write that changes nothing makes no version. */
function arrive(world: World, put: Put): 'changed' | 'same' | 'conflict' {
  const before = newest(world);
  if (before.version !== put.on) return 'conflict';
  const spec = { ...put.spec };
  if (JSON.stringify(spec) === JSON.stringify(before.spec)) return 'same';
  write(world, { spec });
  return 'changed';
}

function answered(world: World, put: Put): void {
  world.seen = newest(world).version;
  take(world, newest(world));
  for (const ip of put.toRestore) world.journal.offers.delete(ip);
  world.pool = restore(world.pool, put.toRestore).state;
}

type Event = { readonly name: string; readonly run: (world: World) => void };

const event = (name: string, run: (world: World) => void): Event => ({ name, run });
const arbWaiting = fc.nat(2);
const arbHow = fc.constantFrom('in flight', 'lost answer', 'crash before', 'crash after');
const arbKey = fc.integer({ min: 0, max: 4 }).map((n) => `c${n}/eth0`);

const arbName = fc.constantFrom('web-0', 'web-1');
const arbUid = fc.constantFrom('u0', 'u1');
const arbIp = fc.constantFrom(...IPS);

const arbEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: arbKey.map((key) => event(`ADD ${key}`, (world) => add(world, key))) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(arbKey, arbName, arbUid)
      .map(([key, name, uid]) => event(`ADD ${key} of ${name} ${uid}`, (world) => addKept(world, key, name, uid))),
  },
  { weight: 5, arbitrary: arbKey.map((key) => event(`DEL ${key}`, (world) => del(world, key))) },
  {
    weight: 4,
    arbitrary: fc.integer({ min: 0, max: 3 }).map((lag) => event(`look ${lag}`, (world) => look(world, lag))),
  },
  {
    weight: 6,
    arbitrary: arbWaiting.map((waiting) =>
      event(`publish with ${waiting} waiting`, (world) => {
        const put = publish(world, waiting);
        if (put !== undefined && arrive(world, put) === 'changed') answered(world, put);
      }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(arbHow, arbWaiting).map(([how, waiting]) =>
      event(`publish with ${waiting} waiting, ${how}`, (world) => {
        const put = publish(world, waiting);
        if (put !== undefined && how === 'in flight') world.inFlight.push(put);
        if (put !== undefined && (how === 'lost answer' || how === 'crash after')) arrive(world, put);
        if (how.startsWith('crash')) crash(world);
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.nat(3).map((index) =>
      event(`arrive late ${index}`, (world) => {
        const [put] = world.inFlight.splice(index, 1);
        if (put !== undefined) arrive(world, put);
      }),
    ),
  },
  { weight: 2, arbitrary: fc.constant(event('crash', crash)) },
  { weight: 1, arbitrary: fc.constant(event('reboot', reboot)) },
  { weight: 2, arbitrary: fc.constant(event('pass', (world) => (world.nowMs += 120_000))) },
  { weight: 4, arbitrary: fc.constantFrom(...IPS).map((ip) => event(`ipamd marks ${ip}`, (world) => mark(world, ip))) },
  { weight: 4, arbitrary: fc.constantFrom(...IPS).map((ip) => event(`ipamd takes ${ip}`, (world) => gone(world, ip))) },
  { weight: 4, arbitrary: fc.constantFrom(...IPS).map((ip) => event(`ipamd gives ${ip}`, (world) => give(world, ip))) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(arbIp, arbName)
      .map(([ip, name]) =>
        event(`ipamd gives ${ip} for ${name}`, (world) => give(world, ip, { namespace: 'ns', name })),
      ),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(arbIp, fc.option(arbUid, { nil: undefined }))
      .map(([ip, uid]) => event(`ipamd names ${uid} for ${ip}`, (world) => nameOwner(world, ip, uid))),
  },
);

function add(world: World, key: string): void {
  const { state, result } = lease(world.pool, { key, families: [4], nowMs: world.nowMs });
  if (result.kind !== 'leased') return;
  for (const { ip, assignmentId } of result.addresses) {
    assertThat(world.journal.offers.get(ip)?.assignmentId !== assignmentId, `${ip} is leased while offered`);
  }
  world.pool = state;
  world.journal.leases.set(
    key,
    result.addresses.map(({ ip }) => ip),
  );
}

function addKept(world: World, key: string, name: string, uid: string): void {
  const { state, result } = leaseStatic(world.pool, { key, pod: { namespace: 'ns', name, uid }, families: [4] });
  if (result.kind !== 'leased') return;
  for (const { ip, assignmentId } of result.addresses) {
    assertThat(world.journal.offers.get(ip)?.assignmentId !== assignmentId, `${ip} is leased while offered`);
  }
  world.pool = state;
  world.journal.leases.set(
    key,
    result.addresses.map(({ ip }) => ip),
  );
}

function del(world: World, key: string): void {
  world.pool = release(world.pool, { key, nowMs: world.nowMs, cooldownMs: 0 }).state;
  world.journal.leases.delete(key);
}

/** Only the journal survives; the first thing seen may be anything that was ever there. */
function crash(world: World): void {
  const { offers, leases, supply } = world.journal;
  let pool = supply === undefined ? EMPTY_POOL : applySupply(EMPTY_POOL, supply).state;
  pool = adopt(
    pool,
    [...leases].map(([key, ips]) => {
      const eniId = pool.addresses.get(ips[0] ?? '')?.eniId ?? '';
      return sampleLease(key.split('/')[0] ?? '', eniId, ips);
    }),
  ).state;
  world.pool = adoptOffers(pool, [...offers.values()]).state;
  world.seen = 0;
  world.lastPacedMs = world.nowMs;
}

/** Every Pod and the journal are gone; what was in flight may still arrive. */
function reboot(world: World): void {
  world.journal = { life: `life-${world.nextId++}`, offers: new Map(), leases: new Map(), supply: undefined };
  crash(world);
}

function mark(world: World, ip: string): void {
  const { addresses, spec } = newest(world);
  const address = addresses.find((one) => one.ip === ip);
  const offer = spec.releasable.find((one) => one.ip === ip);
  if (address?.state !== 'assigned' || offer?.assignmentId !== address.assignmentId) return;
  // A claim that has a Pod is not taken from it.
  if (address.claim?.uid !== undefined) return;
  const owner = world.pool.addresses.get(ip);
  assertThat(owner?.state !== 'leased', `${ip} is taken back while ${owner?.leaseKey} has it`);
  const marked = addresses.map((one) => (one.ip === ip ? { ...one, state: 'releasing' as const } : one));
  write(world, { addresses: marked, epoch: newest(world).epoch + 1 });
}

function gone(world: World, ip: string): void {
  const { addresses, epoch } = newest(world);
  if (addresses.find((one) => one.ip === ip)?.state !== 'releasing') return;
  write(world, { addresses: addresses.filter((one) => one.ip !== ip), epoch: epoch + 1 });
}

/** The Pod of a claim comes to this node, or goes. */
function nameOwner(world: World, ip: string, uid: string | undefined): void {
  const { addresses, epoch } = newest(world);
  const address = addresses.find((one) => one.ip === ip);
  if (address?.claim === undefined || address.state !== 'assigned' || address.claim.uid === uid) return;
  const { namespace, name } = address.claim;
  const claim = uid === undefined ? { namespace, name } : { namespace, name, uid };
  write(world, { addresses: addresses.map((one) => (one === address ? { ...one, claim } : one)), epoch: epoch + 1 });
}

function give(world: World, ip: string, claim?: ClaimMark): void {
  const { addresses, epoch } = newest(world);
  if (addresses.some((one) => one.ip === ip)) return;
  const eniId = ENIS[IPS.indexOf(ip) < 3 ? 0 : 1] ?? '';
  const mark = claim === undefined ? {} : { claim };
  const fresh: Address = { ip, eniId, assignmentId: `as-${world.nextId++}`, state: 'assigned', ...mark };
  write(world, { addresses: [...addresses, fresh], epoch: epoch + 1 });
}

function assertInvariants(world: World): void {
  for (const address of world.pool.addresses.values()) {
    const { ip, state } = address;
    const isOffered = world.journal.offers.get(ip)?.assignmentId === address.assignmentId;
    const isUsable = state === 'free' || state === 'kept' || state === 'leased';
    assertThat(!(isOffered && isUsable), `${ip} is ${state} and offered`);
  }
}

function assertThat(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

function createWorld(): World {
  const world: World = {
    history: [{ version: 1, spec: BARE, epoch: 0, addresses: [] }],
    seen: 0,
    pool: EMPTY_POOL,
    journal: { life: 'life-0', offers: new Map(), leases: new Map(), supply: undefined },
    inFlight: [],
    nowMs: 1_000_000,
    lastPacedMs: 0,
    nextId: 1,
  };
  // One kept address on each ENI from the beginning: a world that has to make them first seldom gets far.
  for (const ip of IPS) give(world, ip, KEPT_AT_FIRST.get(ip));
  look(world, 0);
  const first = publish(world, 0);
  if (first !== undefined && arrive(world, first) === 'changed') answered(world, first);
  return world;
}

test('decidePublication: no address in use is ever taken back, whatever crashes and arrives late', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.array(arbEvent, { minLength: 1, maxLength: 80, size: 'max' }), (history) => {
        const world = createWorld();
        for (const one of history) {
          try {
            one.run(world);
            assertInvariants(world);
          } catch (error) {
            throw new Error(`after ${history.map(({ name }) => name).join('; ')} at ${one.name}`, { cause: error });
          }
        }
      }),
    { numRuns: 5_000 },
  );
});

test('decidePublication: settles, with as much bound as is wanted and every offer in the object', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.array(arbEvent, { maxLength: 60, size: 'max' }), (history) => {
        const world = createWorld();
        for (const one of history) one.run(world);
        world.inFlight = [];
        look(world, 0);
        let writes = 0;
        for (; writes < 20; writes++) {
          const put = publish(world, 0);
          if (put === undefined) break;
          assertThat(arrive(world, put) === 'changed', 'a write that is due changes the object');
          answered(world, put);
          take(world, newest(world));
        }
        assertThat(writes < 20, 'it never ends');
        const { spec, addresses } = newest(world);
        const meant = spec.releasable.filter((entry) =>
          addresses.some(({ ip, assignmentId }) => ip === entry.ip && assignmentId === entry.assignmentId),
        );
        const onRecord = [...world.journal.offers.keys()].sort().join();
        assertThat(
          meant.map(({ ip }) => ip).join() === onRecord,
          `published ${spec.releasable}, on record ${onRecord}`,
        );
        for (const { ip, claim, state } of world.pool.addresses.values()) {
          if (claim === undefined || world.pool.addresses.get(ip)?.supplyState !== 'assigned' || state === 'leased')
            continue;
          const isOffered = meant.some((entry) => entry.ip === ip);
          assertThat(isOffered === (claim.uid === undefined), `${ip} for ${claim.uid} is offered: ${isOffered}`);
        }
      }),
    { numRuns: 2_000 },
  );
});
