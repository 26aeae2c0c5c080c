import type { CallPriority } from '../cloud.ts';
import { FairQueue, type QueueEntry } from './fair-queue.ts';
import { createRate, cutRate, growRate, type Rate, type RateSettings, rateWaitMs, takeFromRate } from './rate.ts';

/** A call that waits for its start. */
export type Ticket = {
  /** Each product has a rate limit over all its APIs. */
  readonly product: string;
  readonly action: string;
  readonly priority: CallPriority;
  readonly owner: string;
};

/** The outcome of a call, as far as rates depend on it. */
type CallReport = {
  readonly product: string;
  readonly action: string;
  readonly isThrottled: boolean;
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  /** Whether the refusal applied to all APIs of the product together. */
  readonly isProductWide: boolean;
  /** Pause that a refusal requests, milliseconds. */
  readonly afterMs: number;
};

/** The present rate of an API; without `action`, of a whole product. */
export type PacedRate = {
  readonly product: string;
  readonly action?: string;
  readonly perSecond: number;
  readonly waiting: number;
};

/** Settings of the pacing. */
export type PacingSettings = {
  /** Calls a second of one product, all APIs together; Tencent's own components use 50. */
  readonly productPerSecond: number;
  /** Most calls of one product in flight, so that memory stays bounded when the cloud hangs. */
  readonly productInFlight: number;
  /** Every so many-th turn goes to the owner, or the API, that was served longest ago, whatever its rank; at least 1. */
  readonly blindEvery: number;
  /** The initial rate of an API: its documented limit. */
  apiStartPerSecond(product: string, action: string): number;
};

/**
 * Calls that may start now, and when to check again; without a time only the end of a call or a new call changes
 * anything.
 */
type Grants<T> = { readonly items: readonly T[]; readonly nextCheckMs?: number };

type Api<T> = {
  readonly settings: RateSettings;
  rate: Rate;
  readonly queue: FairQueue<Waiting<T>>;
  lastServed: number;
};
type Product<T> = {
  readonly settings: RateSettings;
  rate: Rate;
  inFlight: number;
  grants: number;
  readonly apis: Map<string, Api<T>>;
};
type Waiting<T> = { readonly item: T };

const RANK: Readonly<Record<CallPriority, number>> = { pod: 2, warm: 1, gc: 0 };
const FLOOR_PER_SECOND = 0.5;
/** Growth a second, as a share of the ceiling: a tenth of the rate returns in little more than a second of calls. */
const GROWTH_SHARE_PER_SECOND = 0.08;

/** Owners that wait for an API: as many calls as most APIs start in a second. */
const MANY_OWNERS = 20;

/** A queued call; `CallLimiter.leave` removes it. */
type QueuedTicket<T> = { readonly ticket: Ticket; readonly entry: QueueEntry<Waiting<T>> };

/**
 * Decides which calls may start.
 *
 * Each API has an adaptive rate (additive growth, multiplicative cut on refusal). Each product has another rate below a
 * ceiling, which is cut when the account as a whole is refused. In the queue a Pod comes before the warm pool, and that
 * before garbage collection; owners of equal rank are served in turn. A state machine: time is an argument of each
 * call, nothing in it waits.
 */
export class CallLimiter<T> {
  #settings: PacingSettings;
  #products = new Map<string, Product<T>>();
  #grantCount = 0;

  constructor(settings: PacingSettings) {
    this.#settings = settings;
  }

  /** Queues a call. */
  enter(ticket: Ticket, item: T, nowMs: number): QueuedTicket<T> {
    const api = this.#api(ticket.product, ticket.action, nowMs);
    return { ticket, entry: api.queue.add({ item }, RANK[ticket.priority], ticket.owner) };
  }

  /** Removes a call from the queue, because its caller gave up. Returns whether it was still queued. */
  leave(queued: QueuedTicket<T>): boolean {
    const api = this.#products.get(queued.ticket.product)?.apis.get(queued.ticket.action);
    return api?.queue.remove(queued.entry) ?? false;
  }

  /** Starts every call that may start. Each granted call must be reported when it ends. */
  grant(nowMs: number): Grants<T> {
    const items: T[] = [];
    let nextCheckMs = Number.POSITIVE_INFINITY;
    for (const product of this.#products.values()) {
      const waitMs = this.#grantOf(product, items, nowMs);
      if (waitMs !== undefined) nextCheckMs = Math.min(nextCheckMs, nowMs + waitMs);
    }
    return Number.isFinite(nextCheckMs) ? { items, nextCheckMs } : { items };
  }

  /** Updates the rates with the outcome of a granted call. */
  report(report: CallReport, nowMs: number): void {
    const product = this.#product(report.product, nowMs);
    const api = this.#api(report.product, report.action, nowMs);
    product.inFlight -= 1;
    if (!report.isThrottled) {
      api.rate = growRate(api.rate, api.settings, nowMs);
      product.rate = growRate(product.rate, product.settings, nowMs);
    } else if (report.isProductWide) product.rate = cutRate(product.rate, product.settings, report, nowMs);
    else api.rate = cutRate(api.rate, api.settings, report, nowMs);
  }

  /** Returns the present rate of an API, calls a second; undefined when it was never called. */
  perSecond(product: string, action: string): number | undefined {
    return this.#products.get(product)?.apis.get(action)?.rate.perSecond;
  }

  /** Yields the present rate of each product and API that was ever called, and how many of its calls wait. */
  *rates(): Iterable<PacedRate> {
    for (const [name, product] of this.#products) {
      const apis = [...product.apis];
      const waiting = apis.reduce((sum, [, api]) => sum + api.queue.size, 0);
      yield { product: name, perSecond: product.rate.perSecond, waiting };
      for (const [action, { rate, queue }] of apis) {
        yield { product: name, action, perSecond: rate.perSecond, waiting: queue.size };
      }
    }
  }

  /** Number of queued calls. */
  get waiting(): number {
    let sum = 0;
    for (const product of this.#products.values()) for (const api of product.apis.values()) sum += api.queue.size;
    return sum;
  }

  /**
   * Reports whether an owner should ask rarely: calls of its own wait, or those of so many others that its turn is seconds
   * away. One whose calls do not wait pays nothing for another's thousand.
   */
  isBusyFor(owner: string): boolean {
    for (const product of this.#products.values())
      for (const { queue } of product.apis.values())
        if (queue.sizeOf(owner) > 0 || queue.ownerCount > MANY_OWNERS) return true;
    return false;
  }

  /**
   * Grants what this product may start; returns the wait until more may start, undefined when time alone changes
   * nothing.
   */
  #grantOf(product: Product<T>, items: T[], nowMs: number): number | undefined {
    while (product.inFlight < this.#settings.productInFlight) {
      const waiting = [...product.apis.values()].filter((api) => api.queue.size > 0);
      if (waiting.length === 0) return undefined;
      const productWaitMs = rateWaitMs(product.rate, nowMs);
      if (productWaitMs > 0) return productWaitMs;
      const ready = waiting.filter((api) => rateWaitMs(api.rate, nowMs) === 0);
      const isOldestFirst = (product.grants + 1) % this.#settings.blindEvery === 0;
      const choose = isOldestFirst ? longestUnserved : preferred;
      const next = ready.reduce<Api<T> | undefined>((best, api) => choose(best, api), undefined);
      if (next === undefined) return Math.min(...waiting.map((api) => rateWaitMs(api.rate, nowMs)));
      const entry = next.queue.take();
      if (entry === undefined) return undefined;
      product.rate = takeFromRate(product.rate, nowMs);
      next.rate = takeFromRate(next.rate, nowMs);
      product.inFlight += 1;
      product.grants += 1;
      this.#grantCount += 1;
      next.lastServed = this.#grantCount;
      items.push(entry.item.item);
    }
    return undefined;
  }

  #product(name: string, nowMs: number): Product<T> {
    const known = this.#products.get(name);
    if (known !== undefined) return known;
    const settings = this.#rateSettings(this.#settings.productPerSecond);
    const made: Product<T> = { settings, rate: createRate(settings, nowMs), inFlight: 0, grants: 0, apis: new Map() };
    this.#products.set(name, made);
    return made;
  }

  #api(productName: string, action: string, nowMs: number): Api<T> {
    const product = this.#product(productName, nowMs);
    const known = product.apis.get(action);
    if (known !== undefined) return known;
    const settings = this.#rateSettings(this.#settings.apiStartPerSecond(productName, action));
    const made: Api<T> = {
      settings,
      rate: createRate(settings, nowMs),
      queue: new FairQueue(this.#settings.blindEvery),
      lastServed: 0,
    };
    product.apis.set(action, made);
    return made;
  }

  #rateSettings(startPerSecond: number): RateSettings {
    const ceilingPerSecond = Math.min(startPerSecond, this.#settings.productPerSecond);
    return {
      startPerSecond,
      ceilingPerSecond,
      floorPerSecond: FLOOR_PER_SECOND,
      growthPerSecond: ceilingPerSecond * GROWTH_SHARE_PER_SECOND,
    };
  }
}

/**
 * Selects the API to serve first: the one whose next call has the higher rank, else the one that was served longer ago.
 */
function preferred<T>(best: Api<T> | undefined, api: Api<T>): Api<T> {
  if (best === undefined) return api;
  const rankOf = (one: Api<T>): number => one.queue.peek()?.rank ?? -1;
  const difference = rankOf(api) - rankOf(best);
  if (difference !== 0) return difference > 0 ? api : best;
  return api.lastServed < best.lastServed ? api : best;
}

/** Selects the API that was served longer ago. */
function longestUnserved<T>(best: Api<T> | undefined, api: Api<T>): Api<T> {
  return best === undefined || api.lastServed < best.lastServed ? api : best;
}
