import { ApiError } from './api-error.ts';
import { VersionLog } from './version-log.ts';

/** A route of a route table. */
export type ModelTableRoute = {
  readonly routeId: number;
  readonly cidr: string;
  /** Address of an instance; of another kind of next hop its id. */
  readonly gatewayIp: string;
  readonly gatewayType: string;
  readonly description: string;
  /** USER; others are made by the cloud and nobody can change them. */
  readonly routeType: string;
  readonly createdAtMs: number;
  /** It is there, and leads nowhere. */
  readonly isDisabled?: boolean;
};

/** A route table. Its routes are replaced as a whole, so that earlier states can be kept. */
export type ModelRouteTable = {
  /** Id, or name, of the table. */
  readonly tableId: string;
  readonly vpcId: string;
  /** Networks that its routes may lead to; empty: any. */
  readonly cidrs: readonly string[];
  readonly routes: readonly ModelTableRoute[];
};

/** What a route is made of; the rest has defaults. */
type RouteOrder = Pick<ModelTableRoute, 'cidr' | 'gatewayIp'> & Partial<ModelTableRoute>;

/** Route tables with their routes, and what they were within the last minute. */
export class RouteTableBook {
  readonly tables = new Map<string, ModelRouteTable>();
  /** Routes that each table may have. May be changed, as a quota is raised. */
  quota: number;
  readonly #past = new VersionLog<ModelRouteTable>();
  readonly #now: () => number;
  /** Code of an unknown table. */
  readonly #unknown: string;
  #serial = 0;

  constructor(now: () => number, quota: number, unknown: string) {
    this.#now = now;
    this.quota = quota;
    this.#unknown = unknown;
  }

  addTable(tableId: string, vpcId: string, cidrs: readonly string[] = []): ModelRouteTable {
    return this.#set({ tableId, vpcId, cidrs, routes: [] });
  }

  /** @throws ApiError when there is no such table */
  get(tableId: string): ModelRouteTable {
    const table = this.tables.get(tableId);
    if (table === undefined) throw new ApiError(this.#unknown, `The route table ${tableId} does not exist.`);
    return table;
  }

  /** Every table as it was at some moment of the last minute. */
  asOf(atMs: number | undefined): ReadonlyMap<string, ModelRouteTable> {
    return atMs === undefined ? this.tables : this.#past.asOf(atMs);
  }

  /** Enters routes; returns them in order. */
  add(tableId: string, orders: readonly RouteOrder[]): readonly ModelTableRoute[] {
    const table = this.get(tableId);
    const added = orders.map((order) => {
      this.#serial += 1;
      const given = { gatewayType: 'NORMAL_CVM', description: '', routeType: 'USER', ...order };
      return { ...given, routeId: this.#serial, createdAtMs: this.#now() };
    });
    this.#set({ ...table, routes: [...table.routes, ...added] });
    return added;
  }

  /** Strikes routes out. */
  remove(tableId: string, routes: readonly ModelTableRoute[]): void {
    const table = this.get(tableId);
    this.#set({ ...table, routes: table.routes.filter((route) => !routes.includes(route)) });
  }

  #set(table: ModelRouteTable): ModelRouteTable {
    this.tables.set(table.tableId, table);
    this.#past.note(table.tableId, this.#now(), table);
    return table;
  }
}
