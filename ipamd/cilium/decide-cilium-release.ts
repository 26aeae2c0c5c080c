import { type CiliumNodeIpam, RELEASE_STATE, type ReleaseState } from '../../crd/cilium-node.ts';
import type { ReleaseMemory } from './release-memory.ts';

/** An address of the node, of an ENI or in `spec.ipam.pool`. */
export type CiliumAddress = {
  readonly ip: string;
  /** 'leaving': it is to be taken off its ENI, and that cannot be undone. 'gone': it is on no ENI of the node. */
  readonly place: 'assigned' | 'leaving' | 'gone';
  /** It is among the addresses that the NodeENIConfig offers back. */
  readonly isOffered: boolean;
  /** It is never asked for: the address of a static Pod, or a target of a load balancer. */
  readonly isKept: boolean;
};

/** Times that a release waits for, milliseconds. */
type CiliumReleaseSettings = {
  /** An address is asked for after it was in no use this long: the cooldown, and at least two intervals of the agent's status. */
  readonly unusedMs: number;
  /** An answer is acted on after this long, in which the API server learns the addresses of new Pods. */
  readonly settleMs: number;
  /** A mark without an answer is withdrawn after this long. */
  readonly answerMs: number;
};

/** What the release of addresses depends on. */
export type CiliumReleaseFacts = {
  readonly node: CiliumNodeIpam;
  /** What was seen up to this look, itself included. */
  readonly memory: ReleaseMemory;
  /** Every address that is on an ENI of the node or in the pool, those first that are best given back. */
  readonly addresses: readonly CiliumAddress[];
  /** Addresses of live Pods of the node by the API server; undefined while they are unknown: then nothing is given back. */
  readonly podIps: ReadonlySet<string> | undefined;
  /**
   * Free addresses above what the node is to have; negative: so many are missing. Addresses in use, addresses with an
   * entry in `status.ipam.release-ips` and addresses that are gone are not free.
   */
  readonly spare: number;
  readonly monotonicMs: number;
  readonly settings: CiliumReleaseSettings;
};

/** Something that people should know of a release. The same is reported at each look while it is so. */
type CiliumReleaseReport = {
  readonly ip: string;
  /**
   * 'unanswered': the agent did not answer the mark, which is withdrawn. 'refused': the agent keeps the address.
   * 'vetoed': the agent gave the address up, and it is in use; it stays. 'lost': it is in use, and on no ENI.
   */
  readonly kind: 'unanswered' | 'refused' | 'vetoed' | 'lost';
};

/** What the three objects are to have. Every step waits until the one before is seen, so each write may fail by itself. */
export type CiliumReleaseDecision = {
  /** Addresses of `spec.ipam.pool`. */
  readonly pool: ReadonlySet<string>;
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
 *   marked-for-release  ipamd       waits. Removes the entry when the address is in use or missing, or without an answer
 *   do-not-release      agent       removes the entry
 *   ready-for-release   agent       takes it out of the pool, then offers it, and when it is on no ENI: released.
 *                                   Before it leaves its ENI, when it is in use or missing: all that back, and removes the entry
 *   released            ipamd       waits: the agent removes the entry, as the pool does not have the address
 * ```
 *
 * An address leaves the pool only when it is ready-for-release, and its ENI only when it has left the pool. So no address is
 * in two pools. Cilium's agent answers a mark that it finds at its start before it knows its Pods: its answer alone frees
 * nothing, for no live Pod by the API server may have the address.
 * @see Cilium pkg/ipam/crd.go updateLocalNodeResource
 */
export function decideCiliumRelease(facts: CiliumReleaseFacts): CiliumReleaseDecision {
  const { node, addresses } = facts;
  const draft: Draft = { pool: new Set(), entries: new Map(), offers: new Set(), reports: [], dueMs: [] };
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
    if (isPooled || place === 'assigned') draft.pool.add(ip);
    if (!isPooled || place === 'leaving' || address.isKept || (place === 'assigned' && left === 0)) continue;
    if (isDue(draft, facts, markDueMs(facts, ip))) {
      draft.entries.set(ip, RELEASE_STATE.marked);
      if (place === 'assigned') left--;
    }
  }
  const known = new Set(addresses.map(({ ip }) => ip));
  for (const [ip, state] of node.releases) {
    if (!known.has(ip)) followEntry(draft, facts, { ip, place: 'gone', isOffered: false, isKept: false }, state, false);
  }
  const { dueMs, ...decided } = draft;
  return { ...decided, againMs: dueMs.length === 0 ? undefined : Math.min(...dueMs) };
}

type Draft = {
  readonly pool: Set<string>;
  readonly entries: Map<string, ReleaseState | undefined>;
  readonly offers: Set<string>;
  readonly reports: CiliumReleaseReport[];
  readonly dueMs: number[];
};

/** Decides what becomes of an address that has an entry. */
function followEntry(
  draft: Draft,
  facts: CiliumReleaseFacts,
  address: CiliumAddress,
  state: ReleaseState,
  isMissing: boolean,
): void {
  const { ip, place, isKept } = address;
  const isInUse = facts.podIps?.has(ip) === true || facts.node.used.has(ip);
  const isPooled = facts.node.pool.has(ip);
  const since = facts.memory.entries.get(ip)?.sinceMs ?? facts.monotonicMs;
  switch (state) {
    case RELEASE_STATE.marked: {
      if (isPooled) draft.pool.add(ip);
      const isUnanswered = isDue(draft, facts, since + facts.settings.answerMs);
      if (isUnanswered) draft.reports.push({ ip, kind: 'unanswered' });
      if (isUnanswered || isInUse || isMissing || isKept || !isPooled) draft.entries.set(ip, undefined);
      return;
    }
    case RELEASE_STATE.refused:
      if (isPooled || place === 'assigned') draft.pool.add(ip);
      draft.entries.set(ip, undefined);
      draft.reports.push({ ip, kind: 'refused' });
      return;
    case RELEASE_STATE.ready:
      if (isInUse) draft.reports.push({ ip, kind: place === 'gone' ? 'lost' : 'vetoed' });
      if (place === 'gone') {
        if (!isPooled) draft.entries.set(ip, RELEASE_STATE.released);
      } else if (place === 'leaving') {
        if (isPooled) draft.pool.add(ip);
      } else if (isInUse || isKept || isMissing) takeBack(draft, address, isPooled);
      else giveBack(draft, facts, ip, since, isPooled);
      return;
    case RELEASE_STATE.released:
      // Not by this machine: an address that is still here was not released.
      if (!isPooled || place === 'gone') return;
      if (isInUse) draft.pool.add(ip);
      if (isInUse) draft.entries.set(ip, undefined);
      return;
  }
}

/** An address that was given up comes back: no more offered, in the pool, and then without its entry. */
function takeBack(draft: Draft, { ip, isOffered }: CiliumAddress, isPooled: boolean): void {
  if (!isOffered) draft.pool.add(ip);
  if (isPooled) draft.pool.add(ip);
  if (isPooled && !isOffered) draft.entries.set(ip, undefined);
}

/** An address that was given up goes: out of the pool, and then offered. */
function giveBack(draft: Draft, facts: CiliumReleaseFacts, ip: string, sinceMs: number, isPooled: boolean): void {
  const { settings, podIps, memory, monotonicMs } = facts;
  const dueMs = Math.max(sinceMs + settings.settleMs, (memory.usedMs.get(ip) ?? monotonicMs) + settings.unusedMs);
  const mayGo = podIps !== undefined && isDue(draft, facts, dueMs);
  if (isPooled && !mayGo) draft.pool.add(ip);
  if (!isPooled && mayGo) draft.offers.add(ip);
}

/** Returns when an address may be marked; undefined when it may not. */
function markDueMs({ node, memory, podIps, settings }: CiliumReleaseFacts, ip: string): number | undefined {
  const { aliveMs, silentMs, usedMs } = memory;
  const isAlive = aliveMs !== undefined && aliveMs > (silentMs ?? Number.NEGATIVE_INFINITY) && node.used.size > 0;
  const lastMs = usedMs.get(ip);
  if (!isAlive || lastMs === undefined || podIps === undefined || podIps.has(ip) || node.used.has(ip)) return undefined;
  return lastMs + settings.unusedMs;
}

/** Tells whether a time has come, and notes it if it has not. */
function isDue({ dueMs }: Draft, { monotonicMs }: CiliumReleaseFacts, atMs: number | undefined): boolean {
  if (atMs === undefined || atMs <= monotonicMs) return atMs !== undefined;
  dueMs.push(atMs);
  return false;
}

/** Lists entries whose addresses come back because addresses are missing: first those that nothing was done with yet. */
function entriesToTakeBack({ node, addresses, spare }: CiliumReleaseFacts): ReadonlySet<string> {
  const inState = (state: ReleaseState) =>
    addresses.filter(({ ip, place }) => place === 'assigned' && node.releases.get(ip) === state).map(({ ip }) => ip);
  const ips = [...inState(RELEASE_STATE.marked), ...inState(RELEASE_STATE.ready)];
  return new Set(ips.slice(0, Math.max(0, -spare)));
}
