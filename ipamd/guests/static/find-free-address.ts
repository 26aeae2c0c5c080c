import type { Clock } from '../../../runtime/clock.ts';
import type { FreeAddress, PoolView } from './claim-view.ts';

/** Finds the first free address of a pool. @param zone of the Pod's node; undefined: any */
export function findFreeAddress(
  view: PoolView,
  pool: readonly string[],
  zone: string | undefined,
  onHolder: (key: string) => void = () => {},
): FreeAddress | undefined {
  for (const ip of pool) {
    const subnetId = view.subnetOf(ip);
    const there = subnetId === undefined ? undefined : view.zoneOf(subnetId);
    if (subnetId === undefined || (zone !== undefined && there !== undefined && zone !== there)) continue;
    const holder = view.holderOf(ip);
    if (holder === undefined && view.isRegistered?.(ip) !== true) return { ip, subnetId };
    if (holder !== undefined) onHolder(holder.key);
  }
  return undefined;
}

/** How long a pool counts as exhausted where nothing shows that one of its addresses may be free: a waiting claim is looked at as often. */
const EXHAUSTED_MS = 5_000;

type Exhausted = { readonly untilMs: number; readonly holders: ReadonlySet<string> };

/** Remembers which pools are exhausted: hundreds of claims may wait for one, and each would look at thousands of addresses. */
export class FreeAddresses {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** By the pool itself, as a changed StaticIPConfig has another one; then by zone. */
  readonly #exhausted = new Map<
    readonly string[],
    { readonly ips: ReadonlySet<string>; zones: Map<string, Exhausted> }
  >();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** As {@link findFreeAddress}. */
  readonly find: typeof findFreeAddress = (view, pool, zone) => {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#exhausted.get(pool)?.zones.get(zone ?? '');
    // To a claim what it has itself is free.
    if (known !== undefined && known.untilMs > nowMs && !known.holders.has(view.key)) return undefined;
    const holders = new Set<string>();
    const free = findFreeAddress(view, pool, zone, (key) => holders.add(key));
    if (free === undefined) this.#note(pool, zone ?? '', { untilMs: nowMs + EXHAUSTED_MS, holders });
    else this.#exhausted.delete(pool);
    return free;
  };

  /** Notes that addresses may be free. */
  noteFreed(ips: readonly string[]): void {
    if (this.#exhausted.size === 0) return;
    for (const [pool, known] of this.#exhausted) if (ips.some((ip) => known.ips.has(ip))) this.#exhausted.delete(pool);
  }

  /** Notes that any address may be free. */
  noteAnyFreed(): void {
    this.#exhausted.clear();
  }

  #note(pool: readonly string[], zone: string, exhausted: Exhausted): void {
    // A configuration that changed has another pool.
    for (const [one, { zones }] of this.#exhausted) {
      if (zones.values().every(({ untilMs }) => untilMs <= this.#clock.monotonicMs())) this.#exhausted.delete(one);
    }
    const known = this.#exhausted.get(pool) ?? { ips: new Set(pool), zones: new Map<string, Exhausted>() };
    known.zones.set(zone, exhausted);
    this.#exhausted.set(pool, known);
  }
}
