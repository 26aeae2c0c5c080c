import type { CallContext, RoutePort, VpcRoute } from '../cloud/cloud.ts';
import { isCloudError } from '../cloud/cloud-error.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';

/** What shows that the configured VPC is wrong. */
export type VpcFault = {
  /** The VPC of most instances of Nodes. */
  readonly actualId: string;
  /** For people. */
  readonly message: string;
};

type ElsewhereDeps = {
  readonly routes: Pick<RoutePort, 'list' | 'listAll'>;
  /** The route tables that are kept here; absent: the VPC itself is. */
  readonly tables?: readonly string[];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Logger;
};

/** The routes of places that are not kept here, by place. */
export type RoutesByPlace = ReadonlyMap<string, readonly VpcRoute[]>;

const MAX_AGE_MS = 60_000;
const NONE: RoutesByPlace = new Map();

/**
 * Routes in places other than the configured ones, by which Nodes are in service while a setting is wrong: in the other
 * route tables of the VPC, or in the VPC of the instances. Read only when a Node would be closed, once a minute at most.
 */
export class RoutesElsewhere {
  readonly #deps: ElsewhereDeps;
  #last: { readonly vpcId: string; readonly atMs: number; readonly routes: RoutesByPlace | undefined } | undefined;

  constructor(deps: ElsewhereDeps) {
    this.#deps = deps;
  }

  /** Undefined: they cannot be read, and nothing is known of them. @throws the reason of the signal */
  async read(vpcId: string, vpcFault: VpcFault | undefined, context: CallContext): Promise<RoutesByPlace | undefined> {
    const searchedId = vpcFault?.actualId ?? vpcId;
    const nowMs = this.#deps.clock.monotonicMs();
    const last = this.#last;
    if (last !== undefined && last.vpcId === searchedId && nowMs - last.atMs < MAX_AGE_MS) return last.routes;
    const routes = await this.#list(searchedId, vpcFault !== undefined, context);
    this.#last = { vpcId: searchedId, atMs: nowMs, routes };
    return routes;
  }

  async #list(vpcId: string, isOtherVpc: boolean, context: CallContext): Promise<RoutesByPlace | undefined> {
    const { routes, tables, log } = this.#deps;
    try {
      if (tables === undefined)
        return isOtherVpc ? new Map([[vpcId, (await routes.list(vpcId, context)).routes]]) : NONE;
      const all = (await routes.listAll?.(vpcId, context)) ?? NONE;
      return new Map([...all].filter(([place]) => !tables.includes(place)));
    } catch (error) {
      if (!isCloudError(error)) throw error;
      log.warn('routes in other places cannot be read', { vpcId, error });
      // What is not allowed never shows a route.
      return error.retry === 'never' ? NONE : undefined;
    }
  }
}
