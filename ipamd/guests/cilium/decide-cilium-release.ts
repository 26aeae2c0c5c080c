import { type CiliumNodeIpam, RELEASE_STATE, type ReleaseState } from '../../../crd/cilium-node.ts';
import type { ReleaseMemory } from './release-memory.ts';

/** An address of the node, of an ENI or in `spec.ipam.pool`. */
export type CiliumAddress = {
  readonly ip: string;
  /** 'leaving': it is to be taken off its ENI, and that cannot be undone. 'gone': it is on no ENI of the node. */
  readonly place: 'assigned' | 'leaving' | 'gone';
  /** It is among the addresses that the NodeENIConfig offers back. */
  readonly isOffered: boolean;
  /** It is never asked for: the address of a static Pod, or a target of a load balancer. */
  readonly mustStay: boolean;
  /** It is given back whatever is spare or missing: its ENI is to be emptied, or the address is to leave the node. */
  readonly mustGo: boolean;
};

/** Times that a release waits for, milliseconds. */
export type CiliumReleaseSettings = {
  /** An address is asked for after it was in no use this long: the cooldown, and at least two intervals of the agent's status. */
  readonly unusedMs: number;
  /** An answer is acted on after this long, in which the API server learns the addresses of new Pods. */
  readonly settleMs: number;
  /** An entry that the agent does not move on for this long is reported, and no more are marked. */
  readonly answerMs: number;
};

/** What the release of addresses depends on. */
export type CiliumReleaseFacts = {
  readonly node: CiliumNodeIpam;
  /** What was seen up to this look, itself included. */
  readonly memory: ReleaseMemory;
  /** Every address that is on an ENI of the node or in the pool, those first that are best given back. */
  readonly addresses: readonly CiliumAddress[];
  /**
   * The node's live Pods by the API server, `NAMESPACE/POD` by their addresses. Undefined while they are unknown: then
   * nothing is given back.
   */
  readonly podIps: ReadonlyMap<string, string> | undefined;
  /**
   * Free addresses above what the node is to have; negative: so many are missing. Addresses in use, addresses with an
   * entry in `status.ipam.release-ips` and addresses that are gone are not free.
   */
  readonly spare: number;
  readonly monotonicMs: number;
  readonly settings: CiliumReleaseSettings;
};

/** Something that people should know of a release. The same is reported at each look while it is so. */
export type CiliumReleaseReport = {
  readonly ip: string;
  /**
   * 'unanswered': the agent has not moved on its entry for long. 'refused': the agent keeps the address.
   * 'vetoed': the agent gave the address up, and it is in use; it stays. 'lost': it is in use, and on no ENI.
   */
  readonly kind: 'unanswered' | 'refused' | 'vetoed' | 'lost';
  /** Of an 'unanswered' one, milliseconds: `answerMs`, and from then on twice as much each time. */
  readonly forMs?: number;
};

/** What the three objects are to have. Every step waits until the one before is seen, so each write may fail by itself. */
export type CiliumReleaseDecision = {
  /** Addresses of `spec.ipam.pool`. */
  readonly pool: ReadonlySet<string>;
  /**
   * Owners, by address, that entries of the pool get: Pods that the agent may have forgotten. As long as the Pod lives,
   * the agent then gives the address to no other.
   */
  readonly pins: ReadonlyMap<string, string>;
  /** Entries of `status.ipam.release-ips` that change: the new state, or undefined where the entry is removed. */
  readonly entries: ReadonlyMap<string, ReleaseState | undefined>;
  /** All addresses that the NodeENIConfig offers back. */
  readonly offers: ReadonlySet<string>;
  readonly reports: readonly CiliumReleaseReport[];
  /** When something is due though nothing changes, monotonic milliseconds; undefined when nothing is. */
  readonly againMs: number | undefined;
};

/**
 * Decides the next step of every address of a CiliumNode.
 *
 * ```
 *   entry               written by  what ipamd does
 *   none                            marks it: it is spare, nothing uses it for long, and the agent is alive
 *   marked-for-release  ipamd       waits
 *   do-not-release      agent       removes the entry
 *   ready-for-release   agent       takes it out of the pool, then offers it, and when it is on no ENI: released.
 *                                   Before it leaves its ENI, when it is in use or missing: all that back, and removes the entry
 *   released            ipamd       waits: the agent removes the entry, as the pool does not have the address
 * ```
 *
 * An address leaves the pool only when it is ready-for-release, and its ENI only when it has left the pool. So no address is
 * in two pools. Cilium's agent answers a mark that it finds at its start before it knows its Pods: its answer alone frees
 * nothing, for no live Pod by the API server may have the address. Such an agent has forgotten the Pod: the address is
 * pinned to it before the entry is removed. A mark is never withdrawn: the agent may be about to start, and forget.
 * @see Cilium pkg/ipam/crd.go updateLocalNodeResource, allocateNext; docs/adr/0064
 */
export function decideCiliumRelease(facts: CiliumReleaseFacts): CiliumReleaseDecision {
  const { node, addresses } = facts;
  const draft: Draft = {
    pool: new Set(),
    pins: new Map(),
    entries: new Map(),
    offers: new Set(),
    reports: [],
    dueMs: [],
  };
  const missing = entriesToTakeBack(facts);
  let left = Math.max(0, facts.spare);
  for (const address of addresses) {
    const { ip, place } = address;
    const state = node.releases.get(ip);
    if (state !== undefined) {
      followEntry(draft, facts, address, state, missing.has(ip));
      continue;
    }
    const isPooled = node.pool.has(ip);
    if (isPooled || maySupply(address)) draft.pool.add(ip);
    const isCounted = place === 'assigned' && !address.mustGo;
    if (!isPooled || place === 'leaving' || isReserved(facts, address) || (isCounted && left === 0)) continue;
    if (isDue(draft, facts, markDueMs(facts, ip))) {
      draft.entries.set(ip, RELEASE_STATE.marked);
      if (isCounted) left--;
    }
  }
  const known = new Set(addresses.map(({ ip }) => ip));
  for (const [ip, state] of node.releases) {
    if (!known.has(ip)) followEntry(draft, facts, { ...UNKNOWN_ADDRESS, ip }, state, false);
  }
  const { dueMs, ...decided } = draft;
  return { ...decided, againMs: dueMs.length === 0 ? undefined : Math.min(...dueMs) };
}

type Draft = {
  readonly pool: Set<string>;
  readonly pins: Map<string, string>;
  readonly entries: Map<string, ReleaseState | undefined>;
  readonly offers: Set<string>;
  readonly reports: CiliumReleaseReport[];
  readonly dueMs: number[];
};

/** Reports whether an address may join the pool: one that is still offered could leave its ENI under its new user. */
function maySupply({ place, isOffered }: CiliumAddress): boolean {
  return place === 'assigned' && !isOffered;
}

/** An address of an entry that is on no ENI and not in the pool. */
const UNKNOWN_ADDRESS = { place: 'gone', isOffered: false, mustStay: false, mustGo: true } as const;

/** Decides what becomes of an address that has an entry. */
function followEntry(
  draft: Draft,
  facts: CiliumReleaseFacts,
  address: CiliumAddress,
  state: ReleaseState,
  isMissing: boolean,
): void {
  const { ip, place } = address;
  const { node, podIps, settings } = facts;
  const isInUse = podIps?.has(ip) === true || node.used.has(ip);
  const isPooled = node.pool.has(ip);
  const pinnedTo = node.pool.get(ip)?.owner;
  // The agent may not see for long that a pin has gone, and gives the address to its Pod whatever the entry says.
  if (pinnedTo !== undefined) draft.pins.set(ip, pinnedTo);
  const settledMs = sinceMsOf(facts, ip) + settings.settleMs;
  switch (state) {
    case RELEASE_STATE.marked:
      if (isPooled) draft.pool.add(ip);
      reportUnanswered(draft, facts, ip);
      return;
    case RELEASE_STATE.refused:
      if (isPooled || maySupply(address)) draft.pool.add(ip);
      draft.entries.set(ip, undefined);
      draft.reports.push({ ip, kind: 'refused' });
      return;
    case RELEASE_STATE.ready:
      if (isInUse) draft.reports.push({ ip, kind: place === 'gone' ? 'lost' : 'vetoed' });
      if (place === 'gone') {
        if (!isPooled) draft.entries.set(ip, RELEASE_STATE.released);
      } else if (place === 'leaving') {
        if (isPooled) draft.pool.add(ip);
      } else if (isInUse) takeBack(draft, facts, address);
      else if (isMissing || isReserved(facts, address)) {
        if (isDue(draft, facts, settledMs)) takeBack(draft, facts, address);
        else if (isPooled) draft.pool.add(ip);
      } else giveBack(draft, facts, ip, settledMs);
      return;
    case RELEASE_STATE.released:
      // Not by this machine: an address that is still here was not released.
      if (isPooled && place !== 'gone' && isInUse) takeBack(draft, facts, address);
      else reportUnanswered(draft, facts, ip);
      return;
  }
}

/**
 * Reports an entry that the agent does not move on. A text that says for how long changes the status each time it has
 * doubled, and then Cilium's agent looks at its entries again: it forgets an answer when labels change before its write.
 */
function reportUnanswered(draft: Draft, facts: CiliumReleaseFacts, ip: string): void {
  const sinceMs = sinceMsOf(facts, ip);
  let forMs = facts.settings.answerMs;
  if (!isDue(draft, facts, sinceMs + forMs)) return;
  while (sinceMs + forMs * 2 <= facts.monotonicMs) forMs *= 2;
  draft.dueMs.push(sinceMs + forMs * 2);
  draft.reports.push({ ip, kind: 'unanswered', forMs });
}

/** Reports whether the address stays for a Pod. The agent gives a pinned one to its Pod whatever the entry says. */
function isReserved({ node }: CiliumReleaseFacts, { ip, mustStay, mustGo }: CiliumAddress): boolean {
  return mustStay || (!mustGo && node.pool.get(ip)?.owner !== undefined);
}

/** An address that was given up comes back: no more offered, in the pool, and then without its entry. */
function takeBack(draft: Draft, { node, podIps }: CiliumReleaseFacts, { ip, isOffered }: CiliumAddress): void {
  const entry = node.pool.get(ip);
  if (entry !== undefined || !isOffered) draft.pool.add(ip);
  const owner = podIps?.get(ip) ?? entry?.owner;
  if (owner !== undefined) draft.pins.set(ip, owner);
  if (entry !== undefined && entry.owner === owner && !isOffered) draft.entries.set(ip, undefined);
}

/** An address that was given up goes: out of the pool, and then offered. */
function giveBack(draft: Draft, facts: CiliumReleaseFacts, ip: string, settledMs: number): void {
  const { node, settings, podIps, memory, monotonicMs } = facts;
  const unusedMs = (memory.usedMs.get(ip) ?? monotonicMs) + settings.unusedMs;
  const mayGo = podIps !== undefined && isDue(draft, facts, Math.max(settledMs, unusedMs));
  const isPooled = node.pool.has(ip);
  if (isPooled && !mayGo) draft.pool.add(ip);
  if (!isPooled && mayGo) draft.offers.add(ip);
}

/** Returns when an address may be marked; undefined when it may not. */
function markDueMs(facts: CiliumReleaseFacts, ip: string): number | undefined {
  const { node, memory, podIps, settings } = facts;
  const lastMs = memory.usedMs.get(ip);
  // What the object had at the first look may be of an agent that has ended.
  if (memory.aliveMs === undefined || node.used.size === 0 || isAgentSilent(facts)) return undefined;
  if (lastMs === undefined || podIps === undefined || podIps.has(ip) || node.used.has(ip)) return undefined;
  return lastMs + settings.unusedMs;
}

/** Reports whether the agent has not moved on an entry for long. */
function isAgentSilent(facts: CiliumReleaseFacts): boolean {
  const { node, settings, monotonicMs } = facts;
  return [...node.releases].some(
    ([ip, state]) =>
      (state === RELEASE_STATE.marked || state === RELEASE_STATE.released) &&
      sinceMsOf(facts, ip) + settings.answerMs <= monotonicMs,
  );
}

/** Returns since when an entry has its state, as far as is known. */
function sinceMsOf({ memory, monotonicMs }: CiliumReleaseFacts, ip: string): number {
  return memory.entries.get(ip)?.sinceMs ?? monotonicMs;
}

/** Reports whether a time has come, and notes it if it has not. */
function isDue({ dueMs }: Draft, { monotonicMs }: CiliumReleaseFacts, atMs: number | undefined): boolean {
  if (atMs === undefined || atMs <= monotonicMs) return atMs !== undefined;
  dueMs.push(atMs);
  return false;
}

/** Lists addresses that were given up and come back, because addresses are missing. */
function entriesToTakeBack({ node, addresses, spare }: CiliumReleaseFacts): ReadonlySet<string> {
  const ips = addresses
    .filter(({ ip, place, mustGo }) => place === 'assigned' && !mustGo && node.releases.get(ip) === RELEASE_STATE.ready)
    .map(({ ip }) => ip);
  return new Set(ips.slice(0, Math.max(0, -spare)));
}
