import test from 'ava';
import type { Offer } from '../../../agent/journal/journal-content.ts';
import type { Supply, WarmTargets } from '../../../agent/journal/supply.ts';
import { applySupply } from '../../../agent/pool/apply-supply.ts';
import { adopt, adoptOffers } from '../../../agent/pool/pool.ts';
import { EMPTY_POOL, type PoolState } from '../../../agent/pool/pool-state.ts';
import { decidePublication, foreignOffers, type PublicationInput } from '../../../agent/supply/decide-publication.ts';
import type { ObservedNec } from '../../../agent/supply/publication.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const LIFE = 'life-1';
const LATE = { nowMs: 1_000_000, lastReleaseMs: 0, isQuick: false };
const range = (subnet: number, from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `10.0.${subnet}.${from + i}`);

const offerOf = (ip: string, eniId: string): Offer => ({ ip, family: 4, eniId, assignmentId: `as-${ip}` });
const ipsOf = (offers: readonly { readonly ip: string }[]) => offers.map(({ ip }) => ip);

type Given = {
  readonly supply: Supply;
  readonly leased?: Readonly<Record<string, readonly string[]>>;
  readonly offers?: readonly Offer[];
  readonly releasing?: readonly string[];
  readonly spec?: Partial<ObservedNec['spec']>;
  readonly seenEpoch?: number;
  readonly change?: Partial<PublicationInput>;
  readonly warm?: WarmTargets;
};

function poolOf({ supply, leased = {}, offers = [] }: Given): PoolState {
  const leases = Object.entries(leased).flatMap(([eniId, ips]) => ips.map((ip) => sampleLease(ip, eniId, [ip])));
  return adoptOffers(adopt(applySupply(EMPTY_POOL, supply).state, leases).state, offers).state;
}

function decide(given: Given) {
  const { supply, offers = [], releasing = [], spec, seenEpoch, change, warm = { min: 0, max: 0 } } = given;
  const all = supply.enis.flatMap((eni) => eni.addresses);
  return decidePublication({
    pool: poolOf(given),
    offers: new Map(offers.map((offer) => [offer.ip, offer])),
    nec: {
      spec: { desired: 0, releasable: [], observedEpoch: 1, readyResources: [], life: LIFE, ...spec },
      supplyEpoch: seenEpoch ?? supply.epoch,
      addresses: new Map(
        all.map(({ ip, assignmentId }) => [
          ip,
          { assignmentId, state: releasing.includes(ip) ? 'releasing' : 'assigned' } as const,
        ]),
      ),
    },
    warm,
    outside: { waiting: 0, floor: 0 },
    pacing: LATE,
    readyResources: [],
    life: LIFE,
    ...change,
  });
}

const twoEnis = sampleSupply([sampleEni('eni-a', range(1, 1, 4)), sampleEni('eni-b', range(2, 1, 4))]);

test('decidePublication: counts Pods that wait, and at least the floor', (t) => {
  const supply = sampleSupply([sampleEni('eni-a', range(1, 1, 3))]);
  const leased = { 'eni-a': range(1, 1, 3) };
  const warm = { min: 2, max: 2 };
  const desired = (outside: PublicationInput['outside'], limit?: number) =>
    decide({ supply, leased, warm: limit === undefined ? warm : { ...warm, limit }, change: { outside } }).spec.desired;
  t.is(desired({ waiting: 0, floor: 0 }), 5);
  t.is(desired({ waiting: 4, floor: 0 }), 9);
  t.is(desired({ waiting: 4, floor: 10 }), 12);
  t.is(desired({ waiting: 4, floor: 10 }, 8), 8);
});

test('decidePublication: offers one address of the emptiest ENI when its time has come', (t) => {
  const got = decide({ supply: twoEnis, leased: { 'eni-a': ['10.0.1.1'] } });
  t.deepEqual(ipsOf(got.toOffer), ['10.0.2.1']);
  t.true(got.isPaced);
  t.is(got.nextReleaseMs, LATE.nowMs + 120_000);
  t.deepEqual(ipsOf(got.spec.releasable), ['10.0.2.1']);
});

test('decidePublication: waits out the pace, and says until when', (t) => {
  const got = decide({ supply: twoEnis, change: { pacing: { ...LATE, lastReleaseMs: LATE.nowMs - 119_999 } } });
  t.deepEqual(got.toOffer, []);
  t.is(got.nextReleaseMs, LATE.nowMs + 1);
});

test('decidePublication: offers all surplus at a time when told to', (t) => {
  const got = decide({ supply: twoEnis, change: { pacing: { ...LATE, isQuick: true } } });
  t.is(got.toOffer.length, 8);
  t.is(got.nextReleaseMs, undefined);
});

test('decidePublication: offers what is beyond the limit without waiting', (t) => {
  const pacing = { ...LATE, lastReleaseMs: LATE.nowMs };
  const got = decide({ supply: twoEnis, warm: { min: 0, max: 8, limit: 6 }, change: { pacing } });
  t.deepEqual(ipsOf(got.toOffer), ['10.0.1.1', '10.0.1.2']);
  t.false(got.isPaced);
});

test('decidePublication: offers what a draining ENI has free without waiting, and takes none of it back', (t) => {
  const supply = sampleSupply([
    sampleEni('eni-a', range(1, 1, 2)),
    sampleEni('eni-b', range(2, 1, 2), { draining: true }),
  ]);
  const pacing = { ...LATE, lastReleaseMs: LATE.nowMs };
  t.deepEqual(ipsOf(decide({ supply, change: { pacing } }).toOffer), range(2, 1, 2));
  const offers = range(2, 1, 2).map((ip) => offerOf(ip, 'eni-b'));
  const got = decide({ supply, offers, change: { pacing, outside: { waiting: 5, floor: 0 } } });
  t.deepEqual(got.toRestore, []);
  t.is(got.spec.desired, 5);
});

test('decidePublication: takes offers of the fullest ENI back before it asks for more', (t) => {
  const offers = [offerOf('10.0.1.4', 'eni-a'), offerOf('10.0.2.4', 'eni-b')];
  const releasable = offers.map(({ ip, assignmentId }) => ({ ip, assignmentId }));
  const leased = { 'eni-a': range(1, 1, 1), 'eni-b': range(2, 1, 3) };
  const got = decide({
    supply: twoEnis,
    offers,
    leased,
    spec: { releasable },
    change: { outside: { waiting: 3, floor: 0 } },
  });
  t.deepEqual(ipsOf(got.toRestore), ['10.0.2.4']);
  t.deepEqual(ipsOf(got.spec.releasable), ['10.0.1.4']);
  t.is(got.spec.desired, 7);
});

test('decidePublication: takes nothing back that is being released already', (t) => {
  const offers = [offerOf('10.0.1.4', 'eni-a')];
  const got = decide({
    ...{ supply: twoEnis, offers, releasing: ['10.0.1.4'] },
    change: { outside: { waiting: 9, floor: 0 } },
  });
  t.deepEqual(got.toRestore, []);
  t.deepEqual(ipsOf(got.spec.releasable), ['10.0.1.4']);
});

test('decidePublication: publishes an offer first that it would take out by a write that changes nothing', (t) => {
  const supply = sampleSupply([sampleEni('eni-a', range(1, 1, 2))]);
  const offers = [offerOf('10.0.1.2', 'eni-a')];
  const change = { outside: { waiting: 1, floor: 0 } };
  const leased = { 'eni-a': ['10.0.1.1'] };
  const first = decide({ supply, offers, leased, spec: { desired: 2 }, change });
  t.true(first.isDue);
  t.deepEqual(first.toRestore, []);
  t.deepEqual(ipsOf(first.spec.releasable), ['10.0.1.2']);
  const second = decide({ supply, offers, leased, spec: { desired: 2, releasable: first.spec.releasable }, change });
  t.deepEqual(ipsOf(second.toRestore), ['10.0.1.2']);
  t.deepEqual(second.spec.releasable, []);
});

test('decidePublication: gives a pair back together, and takes it back together', (t) => {
  const pair = [sampleAddress('10.0.1.9', { pairedIp: 'fd00::9' }), sampleAddress('fd00::9', { pairedIp: '10.0.1.9' })];
  const supply = sampleSupply([sampleEni('eni-a', [], { addresses: pair })]);
  t.deepEqual(ipsOf(decide({ supply }).toOffer), ['10.0.1.9', 'fd00::9']);
  const offers: readonly Offer[] = [offerOf('10.0.1.9', 'eni-a'), { ...offerOf('fd00::9', 'eni-a'), family: 6 }];
  const spec = { releasable: offers.map(({ ip, assignmentId }) => ({ ip, assignmentId })) };
  const got = decide({ supply, offers, spec, change: { outside: { waiting: 1, floor: 0 } } });
  t.deepEqual(ipsOf(got.toRestore), ['10.0.1.9', 'fd00::9']);
});

test('decidePublication: forgets offers that were taken', (t) => {
  const supply = sampleSupply([
    sampleEni('eni-a', [], { addresses: [sampleAddress('10.0.1.1', { assignmentId: 'new' })] }),
  ]);
  const offers = [offerOf('10.0.1.1', 'eni-a'), offerOf('10.0.1.2', 'eni-a')];
  const got = decide({ supply, offers, warm: { min: 1, max: 1 } });
  t.deepEqual(ipsOf(got.toErase), ['10.0.1.1', '10.0.1.2']);
  t.deepEqual(got.spec.releasable, []);
});

for (const [what, given] of Object.entries<Partial<Given>>({
  'an older epoch': { seenEpoch: 0 },
  'an epoch that is not in force': { seenEpoch: 2 },
  'another life': { spec: { life: 'life-0' } },
  'no life yet': { spec: { life: undefined } },
})) {
  test(`decidePublication: changes no offer on an object of ${what}`, (t) => {
    const offers = [offerOf('10.0.1.4', 'eni-a')];
    const got = decide({ supply: twoEnis, offers, ...given, change: { outside: { waiting: 20, floor: 0 } } });
    t.deepEqual([got.toOffer, got.toRestore, got.toErase], [[], [], []]);
    t.deepEqual(ipsOf(got.spec.releasable), ['10.0.1.4']);
    t.is(got.spec.life, LIFE);
    t.true(got.isDue);
  });
}

test('decidePublication: never lowers the epoch that was acted upon', (t) => {
  t.is(decide({ supply: twoEnis, spec: { observedEpoch: 9 } }).spec.observedEpoch, 9);
  t.is(decide({ supply: twoEnis, spec: { observedEpoch: undefined } }).spec.observedEpoch, 1);
});

test('decidePublication: calls for no write only to tidy up what ipamd cannot act upon', (t) => {
  const releasable = [{ ip: '10.0.9.9', assignmentId: 'gone' }];
  const warm = { min: 8, max: 8 };
  t.false(decide({ supply: twoEnis, warm, spec: { desired: 8, releasable } }).isDue);
  t.true(decide({ supply: twoEnis, warm, spec: { desired: 7, releasable } }).isDue);
});

test('decidePublication: takes an address in use out that the object offers', (t) => {
  const releasable = [{ ip: '10.0.1.1', assignmentId: 'as-10.0.1.1' }];
  const warm = { min: 7, max: 7 };
  const got = decide({ supply: twoEnis, warm, leased: { 'eni-a': ['10.0.1.1'] }, spec: { desired: 8, releasable } });
  t.true(got.isDue);
  t.deepEqual(got.spec.releasable, []);
});

test('foreignOffers: names free addresses that the object offers and no record does', (t) => {
  const releasable = ['10.0.1.1', '10.0.1.2', '10.0.1.3'].map((ip) => ({ ip, assignmentId: `as-${ip}` }));
  const stale = { ip: '10.0.1.4', assignmentId: 'old' };
  const pool = poolOf({ supply: twoEnis, leased: { 'eni-a': ['10.0.1.1'] } });
  const nec: ObservedNec = {
    spec: { desired: 0, releasable: [...releasable, stale], observedEpoch: 1, readyResources: [], life: LIFE },
    supplyEpoch: 1,
    addresses: new Map(),
  };
  const offers = new Map([['10.0.1.2', offerOf('10.0.1.2', 'eni-a')]]);
  t.deepEqual(ipsOf(foreignOffers(pool, offers, nec)), ['10.0.1.3']);
});

const KEPT = { namespace: 'ns', name: 'web-0' };
const keptOn = (eniId: string, ip: string, uid?: string) =>
  sampleSupply([
    sampleEni(eniId, [], { addresses: [sampleAddress(ip, { claim: uid === undefined ? KEPT : { ...KEPT, uid } })] }),
  ]);

test('decidePublication: offers a kept address of no Pod at once, and asks for none in its place', (t) => {
  const pacing = { ...LATE, lastReleaseMs: LATE.nowMs };
  const got = decide({ supply: keptOn('eni-a', '10.0.1.1'), change: { pacing } });
  t.deepEqual(ipsOf(got.toOffer), ['10.0.1.1']);
  t.false(got.isPaced);
  t.is(got.spec.desired, 0);
  t.is(got.nextReleaseMs, undefined);
});

test('decidePublication: keeps the offer of a kept address out of use, whatever else is wanted', (t) => {
  const offers = [offerOf('10.0.1.1', 'eni-a')];
  const releasable = offers.map(({ ip, assignmentId }) => ({ ip, assignmentId }));
  const change = { outside: { waiting: 3, floor: 0 } };
  const got = decide({ supply: keptOn('eni-a', '10.0.1.1'), offers, spec: { releasable, desired: 3 }, change });
  t.deepEqual(got.toRestore, []);
  t.false(got.isDue);
  t.is(got.spec.desired, 3);
});

test('decidePublication: takes the offer of a kept address out once its mark names a Pod', (t) => {
  const offers = [offerOf('10.0.1.1', 'eni-a')];
  const releasable = offers.map(({ ip, assignmentId }) => ({ ip, assignmentId }));
  const got = decide({ supply: keptOn('eni-a', '10.0.1.1', 'u1'), offers, spec: { releasable } });
  t.deepEqual(ipsOf(got.toRestore), ['10.0.1.1']);
  t.deepEqual(got.spec.releasable, []);
  t.true(got.isDue);
});

test('decidePublication: leaves a kept address alone that a sandbox has, or that its Pod may have', (t) => {
  const leased = { 'eni-a': ['10.0.1.1'] };
  t.deepEqual(decide({ supply: keptOn('eni-a', '10.0.1.1'), leased }).toOffer, []);
  t.deepEqual(decide({ supply: keptOn('eni-a', '10.0.1.1', 'u1') }).toOffer, []);
  t.deepEqual(decide({ supply: keptOn('eni-a', '10.0.1.1'), spec: { life: 'life-0' } }).toOffer, []);
});

test('foreignOffers: a kept address that somebody else offered counts as offered', (t) => {
  const supply = keptOn('eni-a', '10.0.1.1', 'u1');
  const releasable = [{ ip: '10.0.1.1', assignmentId: 'as-10.0.1.1' }];
  const got = decide({ supply, spec: { releasable } });
  t.deepEqual(ipsOf(got.toOffer), ['10.0.1.1']);
});

/** A node with five warm addresses that was at rest, and one Pod that came. */
const five = sampleSupply([sampleEni('eni-a', range(1, 1, 5))]);
const AT_REST = { forMs: 10_000, lastWriteMs: 0 };
const oneCame = (given: Partial<Given> = {}) =>
  decide({
    supply: five,
    leased: { 'eni-a': ['10.0.1.1'] },
    warm: { min: 5, max: 5 },
    ...given,
    spec: { desired: 5, ...given.spec },
    change: { gathering: AT_REST, ...given.change },
  });

test('decidePublication: demand for a Pod that was served waits ten seconds for more, and no longer', (t) => {
  const first = oneCame();
  t.false(first.isDue);
  t.is(first.gatheringSinceMs, LATE.nowMs);
  t.is(first.spec.desired, 6);
  const after = (ms: number) => oneCame({ change: { gathering: { ...AT_REST, sinceMs: LATE.nowMs - ms } } });
  t.false(after(9_999).isDue);
  t.true(after(10_000).isDue);
  t.is(after(10_000).gatheringSinceMs, LATE.nowMs - 10_000, 'a write that fails does not begin to wait again');
});

test('decidePublication: an epoch waits like demand, with no offers and on an object that was written before', (t) => {
  const supply = sampleSupply([sampleEni('eni-a', range(1, 1, 5))], 3);
  const behind = (spec: Partial<ObservedNec['spec']>, more: Partial<Given> = {}) =>
    oneCame({ supply, leased: {}, spec: { observedEpoch: 2, ...spec }, ...more });
  t.false(behind({}).isDue);
  t.true(behind({ observedEpoch: undefined }).isDue);
  t.true(behind({ desired: undefined }).isDue);
  const offers = [offerOf('10.0.1.5', 'eni-a')];
  const releasable = offers.map(({ ip, assignmentId }) => ({ ip, assignmentId }));
  t.true(behind({ releasable, desired: 4 }, { offers, warm: { min: 4, max: 4 } }).isDue);
});

for (const [what, given] of [
  ['more Pods wait than addresses are free', { change: { outside: { waiting: 5, floor: 0 } } }],
  ['another field is to be written', { change: { readyResources: ['r'] } }],
  ['the object is of another journal', { spec: { life: 'life-0' } }],
  ['the object is an older state', { seenEpoch: 0 }],
] as const) {
  test(`decidePublication: demand does not wait when ${what}`, (t) => {
    const { change } = given as Partial<Given>;
    const got = oneCame({ ...given, change: { gathering: AT_REST, ...change } });
    t.true(got.isDue);
    t.is(got.gatheringSinceMs, undefined);
  });
}

test('decidePublication: demand for the first address on a further ENI does not wait, for the next it does', (t) => {
  const addresses = new Map(range(1, 1, 5).map((ip) => [ip, { assignmentId: `as-${ip}`, state: 'assigned' as const }]));
  const seen = (desired: number, eniPlaces: number): ObservedNec => ({
    ...{ supplyEpoch: 1, addresses, eniPlaces },
    spec: { desired, releasable: [], observedEpoch: 1, readyResources: [], life: LIFE },
  });
  t.false(oneCame({ change: { gathering: AT_REST, nec: seen(5, 1) } }).isDue);
  t.true(oneCame({ change: { gathering: AT_REST, nec: seen(5, 0) } }).isDue);
  const leased = { 'eni-a': range(1, 1, 2) };
  t.false(oneCame({ leased, change: { gathering: AT_REST, nec: seen(6, 0) } }).isDue);
});
