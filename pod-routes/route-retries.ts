import type { CloudError } from '../cloud/cloud-error.ts';
import { type BackoffSettings, backoffMs } from '../runtime/backoff.ts';
import type { Clock } from '../runtime/clock.ts';
import type { RoutePlan } from './decide-routes.ts';

/** Creations and moves of a plan. */
export type RouteCreations = Pick<RoutePlan, 'create' | 'move'>;

const RETRY: BackoffSettings = { firstMs: 5_000, maxMs: 60_000, factor: 2, jitter: 0.3 };
/** Of a refusal that concerns every creation. */
const MAX_REFUSED_MS = 600_000;

/**
 * When creations and moves of routes that failed are tried again. A refusal that concerns all of them, such as a quota,
 * holds all back; after its time one call tries whether it still stands.
 */
export class RouteRetries {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #random: () => number;
  readonly #byCidr = new Map<string, { readonly atMs: number; readonly attempts: number }>();
  #refusedUntilMs = 0;
  /** Refusals in a row. */
  #refusals = 0;
  #refusal: CloudError | undefined;

  constructor({ clock, random }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly random: () => number }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Whether the next creation is the one that tries. */
  get isProbing(): boolean {
    return this.#refusal !== undefined;
  }

  /** The refusal that concerns every creation, until one is made. */
  get refusal(): CloudError | undefined {
    return this.#refusal;
  }

  /** Returns how often in a row a network failed. */
  attemptsOf(cidr: string): number {
    return this.#byCidr.get(cidr)?.attempts ?? 0;
  }

  /** Selects what may be tried now. */
  select({ create, move }: RouteCreations): RouteCreations {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#refusedUntilMs) return { create: [], move: [] };
    const isDue = ({ cidr }: { readonly cidr: string }): boolean => (this.#byCidr.get(cidr)?.atMs ?? 0) <= nowMs;
    return { create: create.filter(isDue), move: move.filter(isDue) };
  }

  /** Notes what became of what was tried: errors by network, and the refusal that concerns all. */
  note(
    { create, move }: RouteCreations,
    failed: ReadonlyMap<string, CloudError>,
    refusal: CloudError | undefined,
  ): void {
    const nowMs = this.#clock.monotonicMs();
    for (const { cidr } of [...create, ...move]) {
      const attempts = (this.#byCidr.get(cidr)?.attempts ?? 0) + 1;
      const error = failed.get(cidr);
      if (error === undefined) this.#byCidr.delete(cidr);
      else if (error !== refusal) {
        this.#byCidr.set(cidr, { atMs: nowMs + backoffMs(RETRY, attempts, this.#random()), attempts });
      }
    }
    if (refusal !== undefined) {
      this.#refusals += 1;
      this.#refusal = refusal;
      const settings = { ...RETRY, firstMs: Math.max(RETRY.firstMs, refusal.afterMs), maxMs: MAX_REFUSED_MS };
      this.#refusedUntilMs = nowMs + backoffMs(settings, this.#refusals, this.#random());
    } else if (create.length + move.length > 0) {
      this.#refusals = 0;
      this.#refusal = undefined;
    }
  }

  /** Lets the next creation try: a quota has capacity again. */
  allowProbe(): void {
    this.#refusedUntilMs = 0;
  }

  /** Forgets networks that are not in `known`. */
  forgetOthers(known: ReadonlySet<string>): void {
    for (const cidr of this.#byCidr.keys()) if (!known.has(cidr)) this.#byCidr.delete(cidr);
  }
}
