import test from 'ava';
import type { CiliumAllocation, CiliumNodeIpam, ReleaseState } from '../../../../crd/cilium-node.ts';
import {
  type CiliumAddress,
  type CiliumReleaseDecision,
  type CiliumReleaseFacts,
  decideCiliumRelease,
} from '../../../../ipamd/guests/cilium/decide-cilium-release.ts';
import { NOTHING_SEEN, type ReleaseMemory, rememberReleases } from '../../../../ipamd/guests/cilium/release-memory.ts';

const IP = '10.0.0.9';
const SETTINGS = { unusedMs: 120_000, settleMs: 15_000, answerMs: 60_000 };
const NOW = 1_000_000;
const LONG_AGO = 0;

type Case = {
  readonly state?: ReleaseState;
  /** How long the entry has its state; long, unless said. */
  readonly ageMs?: number;
  readonly place?: CiliumAddress['place'];
  readonly isPooled?: boolean;
  readonly isOffered?: boolean;
  readonly mustStay?: boolean;
  /** The owner in the pool. */
  readonly owner?: string;
  readonly mustGo?: boolean;
  readonly isLive?: boolean;
  readonly isUsed?: boolean;
  readonly spare?: number;
  readonly memory?: Partial<ReleaseMemory>;
  readonly facts?: Partial<CiliumReleaseFacts>;
  readonly want: Partial<Step>;
};

/** What becomes of the one address: a state of its entry, 'none' when that is removed, '' when it stays as it is. */
type Step = {
  readonly entry: string;
  readonly isPooled: boolean;
  readonly isOffered: boolean;
  readonly pin: string;
  readonly reports: string;
};

const STAYS: Step = { entry: '', isPooled: true, isOffered: false, pin: '', reports: '' };
const OUT: Step = { ...STAYS, isPooled: false };

const CASES: Readonly<Record<string, Case>> = {
  'none: a spare address is marked': { want: { ...STAYS, entry: 'marked-for-release' } },
  'none: one that is not spare is not': { spare: 0, want: STAYS },
  'none: not while a Pod has it': { isLive: true, want: STAYS },
  'none: not while the agent says that it is in use': { isUsed: true, want: STAYS },
  'none: not the address of a static Pod': { mustStay: true, want: STAYS },
  'none: not while it is pinned': { owner: 'shop/a', want: STAYS },
  'none: but when it must go': { owner: 'shop/a', mustGo: true, want: { ...STAYS, entry: 'marked-for-release' } },
  'none: not before it was unused for long': { memory: { usedMs: new Map([[IP, NOW - 119_999]]) }, want: STAYS },
  'none: not before the agent wrote something': { memory: { aliveMs: undefined }, want: STAYS },
  'none: not while the agent has nothing in use': { facts: { node: nodeOf({ used: [] }) }, want: STAYS },
  'none: not while Pods are unknown': { facts: { podIps: undefined }, want: STAYS },
  'none: a new address joins the pool': { isPooled: false, want: STAYS },
  'none: one that is still offered does not join': { isPooled: false, isOffered: true, want: OUT },
  'refused: nor does it then': {
    state: 'do-not-release',
    isPooled: false,
    isOffered: true,
    want: { ...OUT, entry: 'none', reports: 'refused' },
  },
  'none: one that leaves its ENI does not join': { isPooled: false, place: 'leaving', want: OUT },
  'none: one that is gone is asked for though none is spare': {
    place: 'gone',
    spare: 0,
    want: { ...STAYS, entry: 'marked-for-release' },
  },
  'marked: waits': { state: 'marked-for-release', ageMs: 1, want: STAYS },
  'none: one that must go is asked for though none is spare': {
    mustGo: true,
    spare: 0,
    want: { ...STAYS, entry: 'marked-for-release' },
  },
  'marked: reported without an answer': { state: 'marked-for-release', want: { ...STAYS, reports: 'unanswered' } },
  'marked: waits though a Pod has it': { state: 'marked-for-release', ageMs: 1, isLive: true, want: STAYS },
  'marked: waits though it is missing': { state: 'marked-for-release', ageMs: 1, spare: -1, want: STAYS },
  'refused: removed': { state: 'do-not-release', want: { ...STAYS, entry: 'none', reports: 'refused' } },
  'ready: leaves the pool': { state: 'ready-for-release', want: OUT },
  'ready: not at once': { state: 'ready-for-release', ageMs: 14_999, want: STAYS },
  'ready: not before it was unused for long': {
    state: 'ready-for-release',
    memory: { usedMs: new Map([[IP, NOW - 119_999]]) },
    want: STAYS,
  },
  'ready: not while Pods are unknown': { state: 'ready-for-release', facts: { podIps: undefined }, want: STAYS },
  'ready: is offered out of the pool': {
    state: 'ready-for-release',
    isPooled: false,
    want: { ...OUT, isOffered: true },
  },
  'ready: stays offered': {
    state: 'ready-for-release',
    isPooled: false,
    isOffered: true,
    want: { ...OUT, isOffered: true },
  },
  'ready: waits while it leaves its ENI': { state: 'ready-for-release', isPooled: false, place: 'leaving', want: OUT },
  'ready: released when it is gone': {
    state: 'ready-for-release',
    isPooled: false,
    place: 'gone',
    want: { ...OUT, entry: 'released' },
  },
  'ready: leaves the pool when it is gone': { state: 'ready-for-release', place: 'gone', want: OUT },
  'ready: a Pod has it: it is pinned to the Pod': {
    state: 'ready-for-release',
    isLive: true,
    want: { ...STAYS, pin: 'shop/a', reports: 'vetoed' },
  },
  'ready: a Pod has it that it is pinned to: the entry is removed': {
    state: 'ready-for-release',
    isLive: true,
    owner: 'shop/a',
    want: { ...STAYS, entry: 'none', pin: 'shop/a', reports: 'vetoed' },
  },
  'ready: a Pod has it, out of the pool: back into the pool first': {
    state: 'ready-for-release',
    isLive: true,
    isPooled: false,
    want: { ...STAYS, pin: 'shop/a', reports: 'vetoed' },
  },
  'ready: a Pod has it, and it is offered: the offer goes first': {
    state: 'ready-for-release',
    isLive: true,
    isPooled: false,
    isOffered: true,
    want: { ...OUT, pin: 'shop/a', reports: 'vetoed' },
  },
  'ready: the agent itself says that it is in use': {
    state: 'ready-for-release',
    isUsed: true,
    want: { ...STAYS, entry: 'none', reports: 'vetoed' },
  },
  'ready: it is missing: the entry is removed': {
    state: 'ready-for-release',
    spare: -1,
    want: { ...STAYS, entry: 'none' },
  },
  'ready: it is pinned: the entry is removed': {
    state: 'ready-for-release',
    owner: 'shop/a',
    want: { ...STAYS, entry: 'none', pin: 'shop/a' },
  },
  'ready: it is missing, but not at once': { state: 'ready-for-release', ageMs: 14_999, spare: -1, want: STAYS },
  'ready: it must go, though addresses are missing': {
    state: 'ready-for-release',
    spare: -1,
    mustGo: true,
    want: OUT,
  },
  'ready: a Pod has it, and it is gone': {
    state: 'ready-for-release',
    isLive: true,
    isPooled: false,
    place: 'gone',
    want: { ...OUT, entry: 'released', reports: 'lost' },
  },
  'released: waits for the agent': { state: 'released', ageMs: 1, isPooled: false, place: 'gone', want: OUT },
  'released: reported when the agent does not remove it': {
    state: 'released',
    isPooled: false,
    place: 'gone',
    want: { ...OUT, reports: 'unanswered' },
  },
  'released: leaves the pool': { state: 'released', ageMs: 1, place: 'gone', want: OUT },
  'released: by another, of an address that is free': { state: 'released', ageMs: 1, want: OUT },
  'released: by another, of an address in use': { state: 'released', isUsed: true, want: { ...STAYS, entry: 'none' } },
};

for (const [title, one] of Object.entries(CASES)) {
  test(title, (t) => t.deepEqual(stepOf(decideCiliumRelease(factsOf(one))), one.want));
}

test('no more are marked than are spare, the first of the list first', (t) => {
  const ips = ['10.0.0.3', '10.0.0.2', '10.0.0.1'];
  const facts = factsOf({ want: {} });
  const { entries } = decideCiliumRelease({
    ...facts,
    node: nodeOf({ pool: ips }),
    addresses: ips.map((ip) => addressOf({ ip })),
    memory: { ...facts.memory, usedMs: new Map(ips.map((ip) => [ip, LONG_AGO])) },
    spare: 2,
  });
  t.deepEqual([...entries.keys()], ['10.0.0.3', '10.0.0.2']);
});

test('no more are taken back than are missing, and none that has no answer yet', (t) => {
  const states: readonly (readonly [string, ReleaseState])[] = [
    ['10.0.0.3', 'marked-for-release'],
    ['10.0.0.2', 'ready-for-release'],
    ['10.0.0.4', 'ready-for-release'],
  ];
  const ips = states.map(([ip]) => ip);
  const { entries } = decideCiliumRelease({
    ...factsOf({ want: {} }),
    node: { ...nodeOf({ pool: ips }), releases: new Map(states) },
    addresses: ips.map((ip) => addressOf({ ip })),
    memory: { ...NOTHING_SEEN, entries: new Map(states.map(([ip, state]) => [ip, { state, sinceMs: LONG_AGO }])) },
    spare: -1,
  });
  t.deepEqual([...entries], [['10.0.0.2', undefined]]);
});

test('nothing is marked while a mark has had no answer for long', (t) => {
  const facts = factsOf({ want: {} });
  const other = '10.0.0.8';
  const decide = (sinceMs: number) =>
    decideCiliumRelease({
      ...facts,
      node: { ...facts.node, releases: new Map([[other, 'marked-for-release']]) },
      memory: { ...facts.memory, entries: new Map([[other, { state: 'marked-for-release', sinceMs }]]) },
    }).entries.has(IP);
  t.true(decide(NOW - SETTINGS.answerMs + 1));
  t.false(decide(NOW - SETTINGS.answerMs));
});

test('an entry of an address that is in no list is followed, too', (t) => {
  const { entries } = decideCiliumRelease({
    ...factsOf({ want: {} }),
    node: { ...nodeOf({ pool: [] }), releases: new Map([[IP, 'ready-for-release']]) },
    addresses: [],
  });
  t.deepEqual([...entries], [[IP, 'released']]);
});

test('the time of the next step is the earliest one', (t) => {
  const one = { memory: { usedMs: new Map([[IP, NOW - 100_000]]) }, want: {} };
  t.is(decideCiliumRelease(factsOf(one)).againMs, NOW + 20_000);
  t.is(decideCiliumRelease(factsOf({ state: 'marked-for-release', ageMs: 10_000, want: {} })).againMs, NOW + 50_000);
  t.is(decideCiliumRelease(factsOf({ isLive: true, want: {} })).againMs, undefined);
});

const look = (
  node: CiliumNodeIpam,
  monotonicMs: number,
  podIps: ReadonlyMap<string, string> | undefined = new Map(),
) => ({
  node,
  addresses: [{ ip: IP }],
  podIps,
  monotonicMs,
});

test('what has no answer is reported again each time that it has lasted twice as long', (t) => {
  const decide = (ageMs: number) => decideCiliumRelease(factsOf({ state: 'marked-for-release', ageMs, want: {} }));
  const reports = [59_999, 60_000, 119_999, 120_000, 479_999].map((ms) => decide(ms).reports.map(({ forMs }) => forMs));
  t.deepEqual(reports, [[], [60_000], [60_000], [120_000], [240_000]]);
  t.is(decide(130_000).againMs, NOW + 110_000);
});

test('an address counts as used until it was first seen unused', (t) => {
  const first = rememberReleases(NOTHING_SEEN, look(nodeOf({}), 1_000));
  const second = rememberReleases(first, look(nodeOf({}), 2_000));
  const used = rememberReleases(second, look(nodeOf({ used: [IP] }), 3_000));
  const live = rememberReleases(used, look(nodeOf({}), 4_000, new Map([[IP, 'shop/a']])));
  const unknown = rememberReleases(live, { ...look(nodeOf({}), 5_000), podIps: undefined });
  const last = rememberReleases(unknown, look(nodeOf({}), 6_000));
  const times = [first, second, used, live, unknown, last].map(({ usedMs }) => usedMs.get(IP));
  t.deepEqual(times, [1_000, 1_000, 3_000, 4_000, 5_000, 5_000]);
});

test('an agent is alive when it writes something after the first look', (t) => {
  const first = rememberReleases(NOTHING_SEEN, look(nodeOf({}), 1_000));
  const same = rememberReleases(first, look(nodeOf({}), 2_000));
  const empty = rememberReleases(same, look(nodeOf({ used: [] }), 3_000));
  const wrote = rememberReleases(empty, look(nodeOf({ used: ['10.0.0.1'] }), 4_000));
  t.deepEqual(
    [first, same, empty, wrote].map(({ aliveMs }) => aliveMs),
    [undefined, undefined, undefined, 4_000],
  );
});

test('an answer is a sign of life', (t) => {
  const marked = { ...nodeOf({}), releases: new Map([[IP, 'marked-for-release' as const]]) };
  const ready = { ...nodeOf({}), releases: new Map([[IP, 'ready-for-release' as const]]) };
  const asked = rememberReleases(NOTHING_SEEN, look(marked, 1_000));
  t.is(rememberReleases(asked, look(ready, 2_000)).aliveMs, 2_000);
  t.is(rememberReleases(asked, look(nodeOf({}), 2_000)).aliveMs, undefined);
});

function factsOf(one: Case): CiliumReleaseFacts {
  const { state, ageMs = NOW - LONG_AGO, isPooled = true, owner, isLive, isUsed, spare = 1 } = one;
  const node = nodeOf({ pool: isPooled ? [IP] : [], used: isUsed === true ? ['10.0.0.1', IP] : ['10.0.0.1'] });
  return {
    node: {
      ...node,
      pool: new Map([...node.pool].map(([ip, entry]) => [ip, owner === undefined ? entry : { owner }])),
      releases: new Map(state === undefined ? [] : [[IP, state]]),
    },
    memory: {
      usedMs: new Map([[IP, LONG_AGO]]),
      entries: new Map(state === undefined ? [] : [[IP, { state, sinceMs: NOW - ageMs }]]),
      used: new Map(),
      aliveMs: NOW - 10_000,
      ...one.memory,
    },
    addresses: [addressOf(one)],
    podIps: new Map(isLive === true ? [[IP, 'shop/a']] : []),
    spare,
    monotonicMs: NOW,
    settings: SETTINGS,
    ...one.facts,
  };
}

function addressOf({
  ip = IP,
  place = 'assigned',
  isOffered = false,
  mustStay = false,
  mustGo = false,
}: Partial<CiliumAddress>): CiliumAddress {
  return { ip, place, isOffered, mustStay, mustGo };
}

function nodeOf({
  pool = [IP],
  used = ['10.0.0.1'],
}: {
  readonly pool?: readonly string[];
  readonly used?: readonly string[];
}): CiliumNodeIpam {
  const table = (ips: readonly string[]) => new Map(ips.map((ip): [string, CiliumAllocation] => [ip, {}]));
  return {
    pool: table(pool),
    used: table(used),
    minAllocate: undefined,
    preAllocate: undefined,
    maxAboveWatermark: undefined,
    releases: new Map(),
    operatorError: '',
  };
}

function stepOf({ pool, pins, entries, offers, reports }: CiliumReleaseDecision): Step {
  return {
    entry: entries.has(IP) ? (entries.get(IP) ?? 'none') : '',
    isPooled: pool.has(IP),
    isOffered: offers.has(IP),
    pin: pins.get(IP) ?? '',
    reports: reports.map(({ kind }) => kind).join(),
  };
}
