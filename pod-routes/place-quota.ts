import type { CallContext, RoutePort } from '../cloud/cloud.ts';
import { type CloudError, isCloudError } from '../cloud/cloud-error.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { RoutePlan } from './decide-routes.ts';

/** Dependencies of the quota of a place. */
type QuotaDeps = {
  readonly routes: Pick<RoutePort, 'quota'>;
  readonly place: string;
  /** Set by people; the cloud is not asked then. */
  readonly given: number | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Logger;
};

/** Every place takes as many; up to here the cloud is not asked. */
const ALWAYS_TAKEN = 50;
/** A quota that is used up may have been raised; one that could not be read may be readable. */
const READ_AGAIN_MS = 60_000;

/** How many routes a place may have: as people say, or as the cloud says. It is asked only where it matters. */
export class PlaceQuota {
  readonly #deps: QuotaDeps;
  #known: { readonly quota: number | undefined; readonly atMs: number } | undefined;

  constructor(deps: QuotaDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the quota; undefined: it is not known, or not reached.
   * @param count number of routes that are there
   * @param wantedCount number of routes that are to be created
   * @throws the reason of the signal
   */
  async read(count: number, wantedCount: number, context: CallContext): Promise<number | undefined> {
    const { routes, given, clock, log, place } = this.#deps;
    const needed = count + wantedCount;
    if (given !== undefined || routes.quota === undefined) return given;
    const isEnough = needed <= Math.max(ALWAYS_TAKEN, this.#known?.quota ?? 0);
    if (wantedCount === 0 || isEnough) return this.#known?.quota;
    const nowMs = clock.monotonicMs();
    if (this.#known !== undefined && nowMs - this.#known.atMs < READ_AGAIN_MS) return this.#known.quota;
    let failure: CloudError | undefined;
    const quota = await routes.quota(context).catch((error: unknown) => {
      if (!isCloudError(error)) throw error;
      failure = error;
      return this.#known?.quota;
    });
    if (failure !== undefined && this.#known === undefined) {
      log.warn('the quota of routes cannot be read; the cloud refuses what is too many', { place, error: failure });
    }
    this.#known = { quota, atMs: nowMs };
    return quota;
  }
}

/**
 * Leaves out of a plan the creations that would exceed the quota of a place, and says so of each: a
 * call that is certain to be refused is not made. A move needs no quota, as the old route goes first.
 * @param count number of routes that are there, those of others included
 * @param quota most routes that the place takes; undefined: not known
 */
export function limitByQuota(plan: RoutePlan, count: number, quota: number | undefined): RoutePlan {
  if (quota === undefined) return plan;
  const budget = Math.max(0, quota - count);
  if (plan.create.length <= budget) return plan;
  const message = `it would exceed the quota of ${quota} routes; have the quota raised, or delete routes that are not needed`;
  const full = plan.create.slice(budget).map((one) => ({ ...one, message: `no route to ${one.cidr}: ${message}` }));
  return { ...plan, create: plan.create.slice(0, budget), full };
}
