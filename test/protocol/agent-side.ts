import { isDeepStrictEqual } from 'node:util';
import type { Offer } from '../../agent/journal/journal-content.ts';
import type { Lease } from '../../agent/journal/lease.ts';
import type { Supply } from '../../agent/journal/supply.ts';
import { applySupply } from '../../agent/pool/apply-supply.ts';
import { adopt, adoptCooldowns, adoptOffers, lease, release, restore, tick, withdraw } from '../../agent/pool/pool.ts';
import { EMPTY_POOL, type PoolAddress, type PoolState } from '../../agent/pool/pool-state.ts';
import { decidePublication, foreignOffers } from '../../agent/supply/decide-publication.ts';
import type { ObservedNec } from '../../agent/supply/publication.ts';
import { retainEnisInUse } from '../../agent/supply/retain-enis-in-use.ts';
import { supplyOfConfig } from '../../agent/supply/supply-of-config.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { Move } from './explore.ts';
import {
  type AgentJournal,
  type AgentSide,
  type AgentWrite,
  type Nec,
  podKey,
  type Setting,
  type World,
  withNec,
} from './world.ts';

const COOLDOWN_MS = 1_000;
/** Of the agent's journal, which outlives its crashes. */
const LIFE = 'life-1';

/** Lists what the agent and its Pods may do. Each step ends where a crash could tell the difference. */
export function agentMoves(world: World, setting: Setting): readonly Move<World>[] {
  return [
    ...takeSupply(world, setting),
    ...publish(world, setting),
    ...landWrites(world),
    ...hearWrites(world),
    ...world.pods.flatMap((_, pod) => podMoves(world, setting, pod)),
    ...endCooldown(world),
    ...crash(world),
  ];
}

function withAgent(world: World, change: Partial<AgentSide>): World {
  return { ...world, agent: { ...world.agent, ...change } };
}

/** Journals offers, and takes their addresses out of use. */
function withOffers(world: World, made: readonly Offer[]): World {
  if (made.length === 0) return world;
  const { pool, journal } = world.agent;
  const offers = new Map(journal.offers);
  for (const offer of made) offers.set(offer.ip, offer);
  const ips = made.map(({ ip }) => ip);
  return withAgent(world, { pool: withdraw(pool, ips).state, journal: { ...journal, offers } });
}

/** The watch tells of the object as it is now. One that it tells of late is as one whose reader was slow before. */
function takeSupply(world: World, { warm, planted }: Setting): readonly Move<World>[] {
  const { agent, nec } = world;
  if (nec.life !== LIFE) return [];
  const told = supplyOf(nec, warm);
  const isKnown = told.epoch === agent.pool.epoch && agent.journal.supply !== undefined;
  // One epoch is one supply, but in an object that was restored and changed since.
  if (isKnown && !world.wasRestored) return [];
  const supply = retainEnisInUse(told, agent.journal.supply, agent.journal.leases.values());
  const least = planted === 'no-epoch' ? -1 : (nec.spec.observedSupplyEpoch ?? -1);
  if (isKnown && isDeepStrictEqual(supply, agent.journal.supply)) return [];
  // Without the guard every supply is believed, whatever its epoch.
  const before = planted === 'no-epoch' ? { ...agent.pool, epoch: -1 } : agent.pool;
  const { state: pool, result } = applySupply(before, supply, least);
  if (result.kind === 'distrusted') return [];
  const foreign = foreignOffers(pool, agent.journal.offers, seenNec(nec));
  const next = withOffers(withAgent(world, { pool, journal: { ...agent.journal, supply } }), foreign);
  return [{ label: `agent: supply of epoch ${supply.epoch} in force${listed(result)}`, next, isFair: true }];
}

function listed({
  added,
  dropped,
  missing,
}: {
  added: readonly string[];
  dropped: readonly string[];
  missing: readonly string[];
}) {
  const part = (name: string, ips: readonly string[]) => (ips.length === 0 ? '' : `, ${name} ${ips.join(' ')}`);
  return part('new', added) + part('dropped', dropped) + part('missing', missing);
}

function supplyOf({ spec, status }: Nec, warm: Setting['warm']): Supply {
  const supply = supplyOfConfig({
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: 'node-1' },
    spec,
    status,
  });
  return { ...supply, warm };
}

/** What the agent reads of the object that it writes on. */
function seenNec({ spec, status, life }: Nec): ObservedNec {
  const addresses = (status.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []);
  return {
    spec: {
      desired: spec.desiredRouteENIIP,
      releasable: (spec.releasableIPs ?? []).map(({ ip, assignmentID }) => ({ ip, assignmentId: assignmentID })),
      observedEpoch: spec.observedSupplyEpoch,
      readyResources: spec.readyResources ?? [],
      life,
    },
    supplyEpoch: status.supplyEpoch ?? 0,
    addresses: new Map(
      addresses.map(({ ip, assignmentID, state }) => [
        ip,
        { assignmentId: assignmentID, state: state === 'Assigned' ? 'assigned' : 'releasing' } as const,
      ]),
    ),
  };
}

/**
 * Journals and withdraws what it offers, and writes; its own writes go one after the other. A write on its way and its
 * landing are one step: what could come between is a write of another, which shuts it out, or what concerns neither.
 */
function publish(world: World, setting: Setting): readonly Move<World>[] {
  const { agent, nec, pods } = world;
  if (agent.writes.some(({ isHeard }) => isHeard)) return [];
  const publication = decidePublication({
    pool: agent.pool,
    offers: agent.journal.offers,
    nec: seenNec(nec),
    warm: setting.warm,
    outside: { waiting: pods.filter((stage) => stage === 'waiting').length, floor: 0 },
    pacing: { nowMs: 1e9, lastReleaseMs: 0, isQuick: true },
    readyResources: [],
    life: LIFE,
  });
  const { toOffer, toErase, toRestore, spec, isDue } = publication;
  if (!isDue && toOffer.length === 0 && toErase.length === 0) return [];
  const left = new Map(agent.journal.offers);
  for (const { ip } of toErase) left.delete(ip);
  const offered = withOffers(withAgent(world, { journal: { ...agent.journal, offers: left } }), toOffer);
  const words = `wants ${spec.desired}, offers [${spec.releasable.map(({ ip }) => ip).join(' ')}], epoch ${spec.observedEpoch}`;
  if (!isDue) return [{ label: `agent: needs no write: ${words}`, next: offered, isFair: true }];
  const write: AgentWrite = { spec, toRestore, stage: 'sent', isHeard: true };
  const sent = (change: Partial<AgentWrite>): World =>
    withAgent(offered, { writes: [...agent.writes, { ...write, ...change }] });
  if (setting.planted === 'no-guard') {
    return [{ label: `agent: sends write: ${words}`, next: sent({ base: nec }), isFair: true }];
  }
  const moves: Move<World>[] = [{ label: `agent: writes: ${words}`, next: land(offered, write), isFair: true }];
  if (toOffer.length + toErase.length > 0) {
    moves.push({ label: `agent: write refused, or never sent: ${words}`, next: offered, isFair: false });
  }
  if (world.left.faults === 0) return moves;
  const less = { ...world.left, faults: world.left.faults - 1 };
  const late = { ...sent({ isHeard: false }), left: less };
  moves.push({ label: `FAULT: agent: gives up its write, which is late: ${words}`, next: late, isFair: false });
  if (toRestore.length > 0) {
    const deaf = { ...land(offered, { ...write, isHeard: false }), left: less };
    moves.push({ label: `FAULT: agent: writes, and hears nothing: ${words}`, next: deaf, isFair: false });
  }
  return moves;
}

/** Puts a write in the object; one whose sender waits for what it brings back is answered later. */
function land(world: World, write: AgentWrite): World {
  const { spec, toRestore } = write;
  const own = {
    desiredRouteENIIP: spec.desired,
    releasableIPs: spec.releasable.map(({ ip, assignmentId }) => ({ ip, assignmentID: assignmentId })),
    observedSupplyEpoch: spec.observedEpoch,
  };
  const base = write.base ?? world.nec;
  const changed: Nec = { ...base, life: spec.life, spec: { ...base.spec, ...own } };
  // A write that changes nothing makes no version: others on the same one still fit.
  const landed = isDeepStrictEqual(changed, world.nec) ? world : withNec(world, changed, write.base === undefined);
  if (!write.isHeard || toRestore.length === 0) return landed;
  return withAgent(landed, { writes: [...landed.agent.writes, { ...write, stage: 'applied' }] });
}

/** A write that was under way for longer reaches the API server, or is lost. */
function landWrites(world: World): readonly Move<World>[] {
  const { agent, left } = world;
  return agent.writes.flatMap((write, i): readonly Move<World>[] => {
    if (write.stage !== 'sent') return [];
    const rest = withAgent(world, { writes: agent.writes.filter((_, j) => j !== i) });
    const words = `offers [${write.spec.releasable.map(({ ip }) => ip).join(' ')}]`;
    const landed: Move<World> = {
      label: `kube: a write of the agent lands: ${words}`,
      next: land(rest, write),
      isFair: true,
    };
    if (left.faults === 0) return [landed];
    const lost = { ...rest, left: { ...left, faults: left.faults - 1 } };
    return [landed, { label: `FAULT: a write of the agent is lost: ${words}`, next: lost, isFair: false }];
  });
}

function hearWrites(world: World): readonly Move<World>[] {
  const { agent } = world;
  const write = agent.writes.find(({ stage, isHeard }) => stage === 'applied' && isHeard);
  if (write === undefined) return [];
  const ips = write.toRestore.map(({ ip }) => ip);
  const { state: pool } = restore(agent.pool, ips);
  const offers = new Map(agent.journal.offers);
  for (const ip of ips) offers.delete(ip);
  const next = withAgent(world, {
    pool,
    journal: { ...agent.journal, offers },
    writes: agent.writes.filter((other) => other !== write),
  });
  const words = ips.length === 0 ? '' : `, ${ips.join(' ')} back in use`;
  return [{ label: `agent: hears that its write is done${words}`, next, isFair: true }];
}

function podMoves(world: World, setting: Setting, pod: number): readonly Move<World>[] {
  const withPod = (from: World, stage: World['pods'][number]): World => ({
    ...from,
    pods: from.pods.map((other, i) => (i === pod ? stage : other)),
  });
  switch (world.pods[pod]) {
    case 'waiting': {
      const added = add(world, setting, pod);
      const gone: Move<World> = {
        label: `pod${pod}: goes without having started`,
        next: withPod(world, 'absent'),
        isFair: false,
      };
      return added === undefined ? [gone] : [{ ...added, next: withPod(added.next, 'running') }, gone];
    }
    case 'running':
      return [{ ...del(world, setting, pod), next: withPod(del(world, setting, pod).next, 'absent') }];
    default:
      // Which of the absent Pods comes is the same to everybody: the first.
      return world.left.pods > 0 && world.pods.indexOf('absent') === pod
        ? [
            {
              label: `pod${pod}: comes`,
              next: { ...withPod(world, 'waiting'), left: { ...world.left, pods: world.left.pods - 1 } },
              isFair: false,
            },
          ]
        : [];
  }
}

function add(world: World, { planted }: Setting, pod: number): Move<World> | undefined {
  const { agent, nowMs } = world;
  const key = podKey(pod);
  const usable =
    planted === 'withdrawn-not-honoured' ? restore(agent.pool, [...agent.pool.addresses.keys()]).state : agent.pool;
  const { state: pool, result } = lease(usable, { key, families: [4], nowMs });
  if (result.kind === 'exhausted') return undefined;
  const { addresses } = result;
  const leases = new Map(agent.journal.leases).set(key, leaseOf(key, addresses));
  const cooldowns = new Map(agent.journal.cooldowns);
  for (const { ip } of addresses) cooldowns.delete(ip);
  const next = withAgent(world, { pool, journal: { ...agent.journal, leases, cooldowns } });
  return { label: `pod${pod}: ADD gives ${addresses.map(({ ip }) => ip).join(' ')}`, next, isFair: true };
}

/** The journal's entry of a sandbox that has these addresses. */
export function leaseOf(key: string, addresses: readonly PoolAddress[]): Lease {
  return {
    containerId: key.split('/')[0] ?? key,
    ifName: 'eth0',
    network: 'tke-eni',
    plugin: 'route-eni',
    netns: '',
    podNamespace: '',
    podName: '',
    podUid: '',
    addresses: addresses.map(({ ip, eniId, assignmentId }) => ({ ip, family: familyOf(ip), eniId, assignmentId })),
    eniId: addresses[0]?.eniId ?? '',
    state: 'active',
    mtu: 1500,
    createdAtMs: 0,
  };
}

function del(world: World, { planted }: Setting, pod: number): Move<World> {
  const { agent } = world;
  // Each release has a time of its own, before any cooldown's end: they end in the order in which they began.
  const nextEndMs = world.resting[0]?.untilMs ?? Number.POSITIVE_INFINITY;
  const nowMs = world.nowMs + Math.min(1, (nextEndMs - world.nowMs) / 2);
  const key = podKey(pod);
  const cooldownMs = planted === 'no-cooldown' ? 0 : COOLDOWN_MS;
  const { state: pool, result } = release(agent.pool, { key, nowMs, cooldownMs });
  const ended = agent.journal.leases.get(key)?.addresses ?? [];
  const leases = new Map(agent.journal.leases);
  leases.delete(key);
  const cooldowns = new Map(agent.journal.cooldowns);
  if (result.kind === 'released') for (const cooldown of result.cooldowns) cooldowns.set(cooldown.ip, cooldown);
  const rested = ended.map(({ ip }) => ({ ip, untilMs: nowMs + COOLDOWN_MS }));
  const next = {
    ...withAgent(world, { pool, journal: { ...agent.journal, leases, cooldowns } }),
    nowMs,
    resting: [...world.resting, ...rested],
  };
  return { label: `pod${pod}: DEL gives back ${ended.map(({ ip }) => ip).join(' ')}`, next, isFair: false };
}

/** Time passes until the oldest cooldown is over, and the agent's timer sees it. */
function endCooldown(world: World): readonly Move<World>[] {
  const [oldest] = world.resting;
  if (oldest === undefined) return [];
  const nowMs = Math.max(world.nowMs, oldest.untilMs);
  const { agent } = world;
  const pool = withoutAges(tick(agent.pool, nowMs).state);
  const cooldowns = new Map(agent.journal.cooldowns);
  for (const [ip, { coolUntilMs }] of agent.journal.cooldowns) if (coolUntilMs <= nowMs) cooldowns.delete(ip);
  const next = {
    ...withAgent(world, { pool, journal: { ...agent.journal, cooldowns } }),
    nowMs,
    resting: world.resting.filter(({ untilMs }) => untilMs > nowMs),
  };
  return [{ label: `time: the cooldown of ${oldest.ip} is over`, next, isFair: true }];
}

/**
 * Forgets when free addresses were freed: the pool then gives them in the order of the supply. Which of several free ones a
 * Pod gets is no matter of the protocol, and what is not remembered need not be told apart.
 */
function withoutAges(pool: PoolState): PoolState {
  const addresses = new Map(
    [...pool.addresses].map(([ip, address]) => {
      const { freedAtMs: _age, ...rest } = address;
      return [ip, address.state === 'cooling' ? address : rest];
    }),
  );
  return { ...pool, addresses };
}

/** The agent dies and starts again from its journal. What it had sent may land, what it was to hear is lost. */
function crash(world: World): readonly Move<World>[] {
  const { agent, left } = world;
  if (left.crashes === 0) return [];
  const writes = agent.writes.filter(({ stage }) => stage === 'sent').map((write) => ({ ...write, isHeard: false }));
  const next = {
    ...withAgent(world, { pool: poolOf(agent.journal), writes }),
    left: { ...left, crashes: left.crashes - 1 },
  };
  return [{ label: 'CRASH: the agent restarts', next, isFair: false }];
}

/** What the agent does with its journal when it starts. */
function poolOf({ leases, cooldowns, offers, supply }: AgentJournal): PoolState {
  let pool = EMPTY_POOL;
  if (supply !== undefined) pool = applySupply(pool, supply).state;
  pool = adopt(pool, [...leases.values()]).state;
  pool = adoptCooldowns(pool, [...cooldowns.values()]).state;
  const recorded: readonly Offer[] = [...offers.values()];
  return adoptOffers(pool, recorded).state;
}
