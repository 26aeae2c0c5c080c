/** A target of a listener; without an instance it is a Pod. */
type PodTarget = { readonly ip: string; readonly instanceId?: string };

/** A registration may take effect, or show, so much later than it was sent. */
const APPEARS_MS = 60_000;

/**
 * Which addresses of Pods are targets of the load balancer of each Service, or may be: what was seen, and what was sent since.
 * Without clock and effect.
 */
export class WantedAddresses {
  /** By Service: what its listeners had when they were read last, and when that was; monotonic milliseconds. */
  readonly #seen = new Map<string, { readonly ips: ReadonlySet<string>; readonly atMs: number }>();
  /** By Service: what is registered since, and when that was sent; monotonic milliseconds. */
  readonly #sent = new Map<string, Map<string, number>>();

  /** Notes the targets that the listeners of a Service have. What was sent a minute ago and is not there has failed. */
  note(service: string, targets: readonly PodTarget[], nowMs: number): void {
    const seen = new Set(targets.flatMap(({ ip, instanceId }) => (instanceId === undefined ? [ip] : [])));
    this.#seen.set(service, { ips: seen, atMs: nowMs });
    const sent = this.#sent.get(service);
    for (const [ip, sentMs] of sent ?? []) if (seen.has(ip) || nowMs - sentMs >= APPEARS_MS) sent?.delete(ip);
    if (sent?.size === 0) this.#sent.delete(service);
  }

  /** Notes that addresses are about to be registered. */
  send(service: string, ips: readonly string[], nowMs: number): void {
    const sent = this.#sent.get(service) ?? new Map<string, number>();
    for (const ip of ips) sent.set(ip, nowMs);
    this.#sent.set(service, sent);
  }

  /** Notes that addresses were not registered after all. */
  withdraw(service: string, ips: readonly string[]): void {
    for (const ip of ips) this.#sent.get(service)?.delete(ip);
  }

  /** Forgets a Service: it has no listener any more. */
  forget(service: string): void {
    this.#seen.delete(service);
    this.#sent.delete(service);
  }

  /** Whether the listeners of a Service were read. */
  isKnown(service: string): boolean {
    return this.#seen.has(service);
  }

  /** Returns how long ago the listeners of a Service were read; infinite: never. */
  ageMs(service: string, nowMs: number): number {
    return nowMs - (this.#seen.get(service)?.atMs ?? Number.NEGATIVE_INFINITY);
  }

  /** All addresses that are, or may be, targets. */
  all(): ReadonlySet<string> {
    return new Set(
      [
        ...[...this.#seen.values()].map(({ ips }) => ips),
        ...[...this.#sent.values()].map((sent) => sent.keys()),
      ].flatMap((ips) => [...ips]),
    );
  }
}

/**
 * Returns the list of a node: what is there already and may still be a target, and what is to be. Sorted.
 * @param wanted undefined: it is not known of all Services yet, and nothing is taken out
 */
export function planList(
  published: readonly string[],
  added: Iterable<string>,
  wanted: ReadonlySet<string> | undefined,
): readonly string[] {
  const kept = wanted === undefined ? published : published.filter((ip) => wanted.has(ip));
  return [...new Set([...kept, ...added])].toSorted();
}
