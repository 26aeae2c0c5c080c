import type { CallContext, RoutePort, VpcRoute } from '../cloud/cloud.ts';
import { type Ipv4Range, ipv4RangeOf } from '../crd/ipv4-range.ts';
import type { Clock } from '../runtime/clock.ts';

/** Routes that lead to networks of Pods, as they were read last. */
export type PodRoutes = {
  /** Monotonic milliseconds at which the read began. */
  readonly readMs: number;
  /** Reports whether a route leads to an address of this network, or may do so: a creation without an answer counts. */
  hasRoute(cidr: string): boolean;
};

/**
 * How long the cloud may describe an earlier state. Own changes outweigh a description for this long; a creation
 * without an answer may still happen for this long.
 */
const STALE_MS = 60_000;

/**
 * The routes of a place: the last list, and the own changes since. The cloud may describe a route that is deleted, or
 * lack one that was created a moment ago; neither leads to a second creation here.
 */
export class RouteCache {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #listed: { readonly routes: readonly VpcRoute[]; readonly readMs: number; readonly isComplete: boolean } | undefined;
  readonly #created = new Map<string, { readonly route: VpcRoute; readonly atMs: number }>();
  readonly #deletedMs = new Map<string, number>();
  /** Time of the last call without an answer, by network. */
  readonly #unclearMs = new Map<string, number>();
  #isDoubtful = false;
  /** Networks of all routes; undefined after a change. */
  #ranges: readonly Ipv4Range[] | undefined;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Reads all routes of a place. @throws CloudError */
  async refresh(port: Pick<RoutePort, 'list'>, place: string, context: CallContext): Promise<void> {
    const readMs = this.#clock.monotonicMs();
    const { routes, isConsistent } = await port.list(place, context);
    this.#listed = { routes, readMs, isComplete: isConsistent };
    this.#isDoubtful = !isConsistent;
    this.#forgetBefore(readMs - STALE_MS);
    this.#ranges = undefined;
  }

  /** Whether the list has to be read again before it is used: it is older than that, or a call had no answer. */
  isDue(maxAgeMs: number): boolean {
    return (
      this.#isDoubtful || this.#listed === undefined || this.#clock.monotonicMs() - this.#listed.readMs >= maxAgeMs
    );
  }

  /** All routes, as far as they are known. */
  routes(): readonly VpcRoute[] {
    const listed = (this.#listed?.routes ?? []).filter(({ routeId }) => !this.#deletedMs.has(routeId));
    const known = new Set(listed.map(({ routeId }) => routeId));
    const created = [...this.#created.values()].map(({ route }) => route);
    return [...listed, ...created.filter(({ routeId }) => !known.has(routeId))];
  }

  /** The last read; undefined before the first, and when the cloud did not list all routes. */
  view(): PodRoutes | undefined {
    const listed = this.#listed;
    if (listed?.isComplete !== true) return undefined;
    this.#ranges ??= [...this.routes().map(({ cidr }) => cidr), ...this.#unclearMs.keys()].flatMap(
      (network) => ipv4RangeOf(network) ?? [],
    );
    const ranges = this.#ranges;
    return {
      readMs: listed.readMs,
      hasRoute: (cidr) => {
        const range = ipv4RangeOf(cidr);
        return range !== undefined && ranges.some((one) => one.start < range.end && range.start < one.end);
      },
    };
  }

  noteCreated(route: VpcRoute): void {
    this.#unclearMs.delete(route.cidr);
    // Where ids are made of network and address, the same route may come again.
    this.#deletedMs.delete(route.routeId);
    this.#created.set(route.routeId, { route, atMs: this.#clock.monotonicMs() });
    this.#ranges = undefined;
  }

  noteDeleted(routeId: string): void {
    this.#created.delete(routeId);
    this.#deletedMs.set(routeId, this.#clock.monotonicMs());
    this.#ranges = undefined;
  }

  /** Notes that a call about a network had no answer, or one that contradicts the list. */
  noteUnclear(cidr: string): void {
    this.#isDoubtful = true;
    this.#unclearMs.set(cidr, this.#clock.monotonicMs());
    this.#ranges = undefined;
  }

  #forgetBefore(ms: number): void {
    for (const [routeId, { atMs }] of this.#created) if (atMs < ms) this.#created.delete(routeId);
    for (const [routeId, atMs] of this.#deletedMs) if (atMs < ms) this.#deletedMs.delete(routeId);
    for (const [cidr, atMs] of this.#unclearMs) if (atMs < ms) this.#unclearMs.delete(cidr);
  }
}
