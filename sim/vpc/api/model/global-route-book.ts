import { ApiError } from './api-error.ts';
import type { FabricEvent, ModelGlobalRoute } from './types.ts';

/** How far back a description can answer. */
const PAST_MS = 60_000;

/** The routes of a whole VPC, and those that went a short time ago. */
export class GlobalRouteBook {
  readonly routes = new Map<string, ModelGlobalRoute>();
  #gone: { readonly route: ModelGlobalRoute; readonly atMs: number }[] = [];
  #vpcId: string;
  #events: FabricEvent[];

  /** `events` is where the packets' side reads what happened; it has the one VPC. */
  constructor(vpcId: string, events: FabricEvent[]) {
    this.#vpcId = vpcId;
    this.#events = events;
  }

  add(route: ModelGlobalRoute): ModelGlobalRoute {
    this.routes.set(route.routeId, route);
    this.#note(route);
    return route;
  }

  remove(route: ModelGlobalRoute, atMs: number): void {
    if (!this.routes.delete(route.routeId)) return;
    this.#gone = this.#gone.filter((one) => one.atMs >= atMs - PAST_MS);
    this.#gone.push({ route, atMs });
    this.#note(route);
  }

  /** @throws ApiError ResourceNotFound */
  get(vpcId: string, routeId: string): ModelGlobalRoute {
    const route = this.routes.get(routeId);
    if (route?.vpcId !== vpcId) throw new ApiError('ResourceNotFound', `The resource ${routeId} does not exist.`);
    return route;
  }

  /** Every route as it was at some moment of the last minute. */
  asOf(atMs: number): ReadonlyMap<string, ModelGlobalRoute> {
    const gone = this.#gone.filter((one) => one.atMs > atMs).map(({ route }) => route);
    const then = [...gone, ...this.routes.values()].filter(({ createdAtMs }) => createdAtMs <= atMs);
    return new Map(then.map((route) => [route.routeId, route]));
  }

  #note({ vpcId, cidr }: ModelGlobalRoute): void {
    if (vpcId !== this.#vpcId) return;
    const others = [...this.routes.values()].filter((one) => one.vpcId === vpcId && one.cidr === cidr);
    const gatewayIps = others.map(({ gatewayIp }) => gatewayIp);
    this.#events.push({ kind: 'global-routes', cidr, gatewayIps });
  }
}
