import type { Clock } from '../../runtime/clock.ts';
import type { NecEntry } from './decode-nec.ts';

/** Name of the index of NodeENIConfigs by the addresses that load balancers have as targets. */
export const NECS_BY_REGISTERED_IP = 'registered-ip';

/** Lists the addresses that are published as targets of load balancers. */
export function readRegisteredIps({ decoded }: Pick<NecEntry, 'decoded'>): readonly string[] {
  return decoded?.loadBalancers?.registeredIPs ?? [];
}

/** Dependencies of {@link RegisteredIps}. */
type RegisteredIpsDeps = {
  /** With {@link NECS_BY_REGISTERED_IP} as an index. */
  readonly necs: { byIndex(name: string, value: string): readonly Pick<NecEntry, 'name' | 'decoded'>[] };
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** How long an address without a Pod waits; above 0. */
  readonly limitMs: number;
  /** Called while an address waits, with the time after which its wait is over. */
  readonly onWait: (nodeName: string, afterMs: number) => void;
};

/**
 * Remembers since when published addresses have no Pod: they wait until they are taken out, or for the limit. A list counts
 * for addresses of its own node alone: who holds the credentials of one node can write its list, and keeps nothing of others.
 */
export class RegisteredIps {
  readonly #deps: RegisteredIpsDeps;
  readonly #idleSinceMs = new Map<string, number>();
  #nextSweep = MIN_SWEEP;

  constructor(deps: RegisteredIpsDeps) {
    this.#deps = deps;
  }

  /** Reports whether an address without a Pod waits, by the list of its node. It is noted as idle from the first question on. */
  isHeld(ip: string): boolean {
    const lists = this.#deps.necs.byIndex(NECS_BY_REGISTERED_IP, ip);
    return lists.some((list) => addressesOf(list).includes(ip)) && this.leftMs(ip) > 0;
  }

  /** Reports whether a node has the address in its list, by the cache. */
  isPublishedBy(nodeName: string, ip: string): boolean {
    return this.#deps.necs.byIndex(NECS_BY_REGISTERED_IP, ip).some(({ name }) => name === nodeName);
  }

  /** Milliseconds that a published address without a Pod waits still. It is noted as idle, as above. */
  leftMs(ip: string): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#idleSinceMs.get(ip) ?? nowMs;
    if (!this.#idleSinceMs.has(ip)) this.#forgetOthers();
    this.#idleSinceMs.set(ip, sinceMs);
    return Math.max(0, sinceMs + this.#deps.limitMs - nowMs);
  }

  /** Notes that Pods of a node ended: the wait of their addresses begins. */
  noteFreed(nodeName: string, ips: readonly string[]): void {
    const published = ips.filter((ip) => this.isPublishedBy(nodeName, ip));
    if (published.length > 0) this.requeue(nodeName, Math.min(...published.map((ip) => this.leftMs(ip))));
  }

  /** Notes that a Pod has the address, or that it is not published. */
  noteOver(ip: string): void {
    this.#idleSinceMs.delete(ip);
  }

  /** Has a node looked at when the wait of an address ends. */
  requeue(nodeName: string, afterMs: number): void {
    this.#deps.onWait(nodeName, afterMs);
  }

  /** Forgets what is not published any more, once that may be much. */
  #forgetOthers(): void {
    if (this.#idleSinceMs.size < this.#nextSweep) return;
    for (const ip of this.#idleSinceMs.keys())
      if (this.#deps.necs.byIndex(NECS_BY_REGISTERED_IP, ip).length === 0) this.#idleSinceMs.delete(ip);
    this.#nextSweep = Math.max(MIN_SWEEP, 2 * this.#idleSinceMs.size);
  }
}

const MIN_SWEEP = 1_000;

/** What of a node's addresses waits, and what has waited for too long. */
export type NodeRegistrations = { readonly held: ReadonlySet<string>; readonly overdue: readonly string[] };

/** Finds the addresses of a node that wait until no load balancer has them; those of Pods are among them. */
export function findRegistrations(
  registered: RegisteredIps,
  entry: Pick<NecEntry, 'decoded'>,
  isInUse: (ip: string) => boolean,
): NodeRegistrations {
  const own = new Set(readRegisteredIps(entry));
  const name = entry.decoded?.metadata.name ?? '';
  const held = new Set<string>();
  const overdue: string[] = [];
  let nextMs = Number.POSITIVE_INFINITY;
  for (const ip of addressesOf(entry)) {
    // The object that is decided on may be newer than the cache.
    const isPublished = own.has(ip) || registered.isPublishedBy(name, ip);
    if (!isPublished || isInUse(ip)) {
      registered.noteOver(ip);
      if (isPublished) held.add(ip);
      continue;
    }
    const leftMs = registered.leftMs(ip);
    if (leftMs === 0) overdue.push(ip);
    else held.add(ip);
    if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
  }
  if (name !== '' && Number.isFinite(nextMs)) registered.requeue(name, nextMs);
  return { held, overdue };
}

function addressesOf({ decoded }: Pick<NecEntry, 'decoded'>): readonly string[] {
  return (decoded?.status?.eniInfos ?? []).flatMap(({ mode, primaryIP, addresses = [] }) => [
    ...(mode === 'direct-eni' && primaryIP !== undefined ? [primaryIP] : []),
    ...addresses.map(({ ip }) => ip),
  ]);
}
