import { type CiliumAllocation, RELEASE_STATE, type ReleaseState } from '../../../crd/cilium-node.ts';
import {
  type CiliumPoolView,
  ciliumPoolOf,
  decideCiliumPool,
} from '../../../ipamd/guests/cilium/decide-cilium-pool.ts';
import {
  type CiliumReleaseDecision,
  type CiliumReleaseFacts,
  decideCiliumRelease,
} from '../../../ipamd/guests/cilium/decide-cilium-release.ts';
import { NOTHING_SEEN, rememberReleases } from '../../../ipamd/guests/cilium/release-memory.ts';
import type { Move } from '../explore.ts';
import {
  type CiliumObject,
  type CiliumSetting,
  type CiliumWorld,
  type IpamdWrites,
  SETTINGS,
  withEntry,
} from './cilium-world.ts';

/** What ipamd and the cloud may do next. */
export function ipamdMoves(world: CiliumWorld, setting: CiliumSetting): readonly Move<CiliumWorld>[] {
  return [...lookMoves(world, setting), ...writeMoves(world), ...cloudMoves(world)];
}

function lookMoves(world: CiliumWorld, setting: CiliumSetting): readonly Move<CiliumWorld>[] {
  const { left } = world;
  const look: Move<CiliumWorld>[] = [];
  if (world.writes === undefined) look.push({ label: 'ipamd: looks', next: lookAt(world, setting), isFair: true });
  if (world.writes === undefined && world.object.error > 0) {
    // The text says for how long, and changes ever more seldom.
    const object = { ...world.object, error: 3 - world.object.error };
    look.push({ label: 'ipamd: says again that there is no answer', next: { ...world, object }, isFair: true });
  }
  if (left.crashes === 0) return look;
  const next = { ...world, memory: NOTHING_SEEN, writes: undefined, left: { ...left, crashes: left.crashes - 1 } };
  return [...look, { label: 'ipamd: dies, and another leads', next, isFair: false }];
}

function lookAt(world: CiliumWorld, { planted }: CiliumSetting): CiliumWorld {
  const { object, nec } = world;
  const facts = factsOf(world, planted);
  const decision = mutate(decideCiliumRelease(facts), facts, planted);
  const entries = [...decision.entries];
  const releases = entries.reduce((map, [ip, state]) => withEntry(map, ip, state), object.releases);
  const isUnanswered = planted !== 'no-report' && decision.reports.some(({ kind }) => kind === 'unanswered');
  const error = isUnanswered ? Math.max(1, object.error) : 0;
  const entriesOfPool = [...ciliumPoolOf(viewOf(world, planted), decision)];
  const pool = new Map(entriesOfPool.map(([ip, { owner = '' }]) => [ip, owner]));
  const isPoolSame = pool.size === object.pool.size && [...pool].every(([ip, owner]) => object.pool.get(ip) === owner);
  const areOffersSame = [...nec].every(([ip, { isOffered }]) => isOffered === decision.offers.has(ip));
  const writes: IpamdWrites = {
    object,
    nec,
    pool: isPoolSame ? undefined : pool,
    status: entries.length === 0 && error === object.error ? undefined : { releases, error },
    offers: areOffersSame ? undefined : decision.offers,
  };
  return { ...world, memory: facts.memory, writes: orNone(writes) };
}

function factsOf(world: CiliumWorld, planted: CiliumSetting['planted']): CiliumReleaseFacts {
  const view = viewOf(world, planted);
  const { ipam: node, podIps } = view;
  const { addresses, spare } = decideCiliumPool(view);
  const monotonicMs = world.now;
  const memory = rememberReleases(world.memory, { node, addresses, podIps, monotonicMs });
  const settings = planted === 'no-settle' ? { ...SETTINGS, settleMs: 0 } : SETTINGS;
  return { node, memory, addresses, podIps, spare, monotonicMs, settings };
}

/** What ipamd sees. The wish is what the NodeENIConfig wants free. */
function viewOf({ object, nec, cloud, pods, wish }: CiliumWorld, planted?: CiliumSetting['planted']): CiliumPoolView {
  const known = [...pods].filter(([, { isKnown }]) => isKnown && planted !== 'no-veto');
  return {
    ipam: {
      pool: new Map([...object.pool].map(([ip, owner]) => [ip, allocationOf(owner)])),
      used: new Map([...object.used].map(([ip, owner]) => [ip, allocationOf(owner)])),
      releases: object.releases,
      minAllocate: undefined,
      preAllocate: undefined,
      maxAboveWatermark: undefined,
      operatorError: '',
    },
    supply: [...nec].sort().map(([ip, { isLeaving }]) => ({
      ip,
      eniId: 'eni-1',
      assignmentId: ip,
      isAssigned: !isLeaving,
      isDraining: false,
      isLeaving: false,
    })),
    offered: new Map([...nec].flatMap(([ip, { isOffered }]) => (isOffered ? [[ip, ip]] : []))),
    podIps: new Map(known.map(([pod, { ip }]) => [ip, pod])),
    podKeys: new Set(pods.keys()),
    registered: new Set(),
    elsewhere: new Set([...cloud].flatMap(([ip, at]) => (at === 'elsewhere' ? [ip] : []))),
    warm: { min: wish, max: wish },
    floor: 0,
  };
}

function allocationOf(owner: string): CiliumAllocation {
  return owner === '' ? {} : { owner };
}

/** Counts free addresses above the wish, as ipamd knows them. */
export function spareOf(world: CiliumWorld): number {
  return decideCiliumPool(viewOf(world)).spare;
}

/** Does what a wrong decision would. */
function mutate(
  decision: CiliumReleaseDecision,
  { node, spare, addresses }: CiliumReleaseFacts,
  planted: CiliumSetting['planted'],
): CiliumReleaseDecision {
  const inState = (state: ReleaseState) => [...node.releases].filter(([, one]) => one === state).map(([ip]) => ip);
  const marked = inState(RELEASE_STATE.marked);
  switch (planted) {
    case 'leaves-pool-when-marked':
      return { ...decision, pool: new Set([...decision.pool].filter((ip) => !marked.includes(ip))) };
    case 'offered-in-pool': {
      // An address that would leave the pool is offered in place of that.
      const out = addresses.map(({ ip }) => ip).filter((ip) => node.pool.has(ip) && !decision.pool.has(ip));
      return {
        ...decision,
        pool: new Set([...decision.pool, ...out]),
        offers: new Set([...decision.offers, ...out]),
      };
    }
    case 'no-pin': {
      const vetoed = decision.reports.filter(({ kind }) => kind === 'vetoed').map(({ ip }) => ip);
      const entries = new Map([...decision.entries, ...vetoed.map((ip) => [ip, undefined] as const)]);
      return { ...decision, pins: new Map(), entries };
    }
    case 'withdraws-marks':
      if (spare >= 0) return decision;
      return { ...decision, entries: new Map([...decision.entries, ...marked.map((ip) => [ip, undefined] as const)]) };
    case 'keeps-refused': {
      const refused = inState(RELEASE_STATE.refused);
      return { ...decision, entries: new Map([...decision.entries].filter(([ip]) => !refused.includes(ip))) };
    }
    default:
      return decision;
  }
}

/** Writes come in any order, are refused on another version, and may be lost. */
function writeMoves(world: CiliumWorld): readonly Move<CiliumWorld>[] {
  const { writes, left } = world;
  if (writes === undefined) return [];
  const moves: Move<CiliumWorld>[] = [];
  const add = (label: string, done: Partial<CiliumWorld>, rest: IpamdWrites): void => {
    moves.push({ label: `ipamd: writes ${label}`, next: { ...world, ...done, writes: orNone(rest) }, isFair: true });
    if (left.faults === 0) return;
    const spent = { ...left, faults: left.faults - 1 };
    moves.push({
      label: `ipamd: loses ${label}`,
      next: { ...world, writes: orNone(rest), left: spent },
      isFair: false,
    });
  };
  const { pool, status, offers } = writes;
  if (pool !== undefined) {
    const object: CiliumObject = { ...world.object, pool };
    add('the pool', { object }, { ...writes, object, pool: undefined });
  }
  if (status !== undefined) {
    const object: CiliumObject = { ...world.object, ...status };
    add(
      `entries ${[...status.releases].map((one) => one.join(' ')).join()}`,
      { object },
      { ...writes, object, status: undefined },
    );
  }
  if (offers !== undefined) {
    const nec = new Map([...world.nec].map(([ip, one]) => [ip, { ...one, isOffered: offers.has(ip) }]));
    add(`offers ${[...offers].join()}`, { nec }, { ...writes, nec, offers: undefined });
  }
  return moves;
}

/** Drops writes that would be refused, as another has written meanwhile. */
export function dropRefused(world: CiliumWorld): CiliumWorld {
  const { writes, object, nec } = world;
  if (writes === undefined || (writes.object === object && writes.nec === nec)) return world;
  const isCurrent = writes.object === object;
  return {
    ...world,
    writes: orNone({
      ...writes,
      pool: isCurrent ? writes.pool : undefined,
      status: isCurrent ? writes.status : undefined,
      offers: writes.nec === nec ? writes.offers : undefined,
    }),
  };
}

function orNone(writes: IpamdWrites): IpamdWrites | undefined {
  const { pool, status, offers } = writes;
  return pool === undefined && status === undefined && offers === undefined ? undefined : writes;
}

/** An offered address is unassigned, and may go elsewhere; a missing one is assigned. */
function cloudMoves(world: CiliumWorld): readonly Move<CiliumWorld>[] {
  const { cloud, nec, pods } = world;
  const moves: Move<CiliumWorld>[] = [];
  const used = new Set([...pods.values()].filter(({ isKnown }) => isKnown).map(({ ip }) => ip));
  for (const ip of cloud.keys()) {
    const seen = nec.get(ip);
    const at = cloud.get(ip);
    const put = (label: string, change: Partial<CiliumWorld>, isFair = true) =>
      moves.push({ label: `${label} ${ip}`, next: { ...world, ...change }, isFair });
    if (seen?.isOffered === true && !seen.isLeaving && !used.has(ip)) {
      put('ipamd: decides to unassign', { nec: withEntry(nec, ip, { ...seen, isLeaving: true }) });
    }
    if (seen?.isLeaving === true && at === 'here') put('cloud: unassigns', { cloud: withEntry(cloud, ip, 'free') });
    if (seen !== undefined && at !== 'here')
      put('ipamd: hears of the unassigned', { nec: withEntry(nec, ip, undefined) });
    if (at === 'free') put('cloud: gives another node', { cloud: withEntry(cloud, ip, 'elsewhere') }, false);
    if (seen === undefined && at === 'free' && spareOf(world) < 0) {
      const assigned = { isLeaving: false, isOffered: false };
      put('cloud: assigns', { cloud: withEntry(cloud, ip, 'here'), nec: withEntry(nec, ip, assigned) });
    }
  }
  return moves;
}
