import { APPEARS_MS } from './unresolved-calls.ts';

/** A target of a listener; without an instance it is a Pod. */
export type SeenTarget = { readonly ip: string; readonly instanceId?: string; readonly listenerId?: string };

/** What the listeners of an owner had. */
type Seen = {
  readonly ips: ReadonlySet<string>;
  /** By id of a listener. */
  readonly ipsOf: ReadonlyMap<string, readonly string[]>;
  /** When that was; monotonic milliseconds. */
  readonly atMs: number;
  /** Whether all of them were read once. */
  readonly isWhole: boolean;
};

/**
 * Which addresses of Pods are targets of the load balancer of each owner, or may be: what was seen, and what was sent since.
 * Without clock and effect.
 */
export class WantedAddresses {
  /** By owner: what its listeners had when they were read last. */
  readonly #seen = new Map<string, Seen>();
  /** By owner: what is registered since, and when that was sent; monotonic milliseconds. */
  readonly #sent = new Map<string, Map<string, number>>();
  /** The same of what was seen since: a later answer may be as of before that. */
  readonly #lately = new Map<string, Map<string, number>>();

  /**
   * Notes the targets that the listeners of an owner have. What was sent a minute ago and is not there has failed.
   * @param unreadIds listeners that could not be read: they have what they had
   */
  note(owner: string, targets: readonly SeenTarget[], nowMs: number, unreadIds: readonly string[] = []): void {
    const before = this.#seen.get(owner);
    const pods = targets.filter(({ instanceId }) => instanceId === undefined);
    const read = Map.groupBy(pods, ({ listenerId = '' }) => listenerId);
    const kept = unreadIds.map((id) => [id, before?.ipsOf.get(id) ?? []] as const);
    const ipsOf = new Map([...[...read].map(([id, its]) => [id, its.map(({ ip }) => ip)] as const), ...kept]);
    const seen = new Set([...ipsOf.values()].flat());
    const isWhole = unreadIds.length === 0 || before?.isWhole === true;
    this.#seen.set(owner, { ips: seen, ipsOf, atMs: nowMs, isWhole });
    const sent = this.#sent.get(owner);
    const lately = this.#lately.get(owner) ?? new Map<string, number>();
    for (const [ip, sentMs] of sent ?? []) {
      if (seen.has(ip)) lately.set(ip, sentMs);
      if (seen.has(ip) || nowMs - sentMs >= APPEARS_MS) sent?.delete(ip);
    }
    for (const [ip, sentMs] of lately) if (nowMs - sentMs >= APPEARS_MS) lately.delete(ip);
    this.#lately.set(owner, lately);
    if (sent?.size === 0) this.#sent.delete(owner);
  }

  /** Notes that another owner has the same listeners; nothing where those were never read. */
  share(owner: string, other: string): void {
    const seen = this.#seen.get(owner);
    if (seen !== undefined) this.#seen.set(other, seen);
  }

  /** Notes that addresses are about to be registered. */
  send(owner: string, ips: readonly string[], nowMs: number): void {
    const sent = this.#sent.get(owner) ?? new Map<string, number>();
    for (const ip of ips) sent.set(ip, nowMs);
    this.#sent.set(owner, sent);
  }

  /** Notes that addresses were not registered after all. */
  withdraw(owner: string, ips: readonly string[]): void {
    for (const ip of ips) this.#sent.get(owner)?.delete(ip);
  }

  /** Forgets an owner: it has no listener any more. */
  forget(owner: string): void {
    this.#seen.delete(owner);
    this.#sent.delete(owner);
    this.#lately.delete(owner);
  }

  /** Whether all listeners of an owner were read. */
  isKnown(owner: string): boolean {
    return this.#seen.get(owner)?.isWhole === true;
  }

  /** Returns how long ago the listeners of an owner were read; infinite: never. */
  ageMs(owner: string, nowMs: number): number {
    return nowMs - (this.#seen.get(owner)?.atMs ?? Number.NEGATIVE_INFINITY);
  }

  /** Returns when, by time alone, the next address stops being one that may be a target; infinite: none does. */
  nextEndMs(nowMs: number): number {
    const ends = [...this.#lately.values()].flatMap((all) => [...all.values()].map((sentMs) => sentMs + APPEARS_MS));
    return ends.reduce((least, endMs) => (endMs > nowMs ? Math.min(least, endMs) : least), Number.POSITIVE_INFINITY);
  }

  /** All addresses that are, or may be, targets. */
  all(nowMs: number): ReadonlySet<string> {
    const lately = [...this.#lately.values()].flatMap((all) => [...all]);
    return new Set([
      ...[...this.#seen.values()].flatMap(({ ips }) => [...ips]),
      ...[...this.#sent.values()].flatMap((sent) => [...sent.keys()]),
      ...lately.flatMap(([ip, sentMs]) => (nowMs - sentMs < APPEARS_MS ? [ip] : [])),
    ]);
  }
}

/**
 * Returns the list of a node: what is there already and may still be a target, and what is to be. Sorted.
 * @param wanted undefined: it is not known of all owners yet, and nothing is taken out
 */
export function planList(
  published: readonly string[],
  added: Iterable<string>,
  wanted: ReadonlySet<string> | undefined,
): readonly string[] {
  const kept = wanted === undefined ? published : published.filter((ip) => wanted.has(ip));
  return [...new Set([...kept, ...added])].toSorted();
}
