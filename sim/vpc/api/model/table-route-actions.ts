import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { writtenTime } from './limits.ts';
import { readRouteOrder } from './route-actions.ts';
import type { ModelRouteTable, ModelTableRoute } from './route-table-book.ts';

const DESCRIBE: DescribeRules<ModelRouteTable> = {
  idField: 'RouteTableIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  fields: { 'route-table-id': (table) => [table.tableId], 'vpc-id': (table) => [table.vpcId] },
  hasTextPaging: true,
};

const MOST_PER_CALL = 100;

/** The APIs of routes of a VPC's route tables. IPv4 only; done when answered, for all routes of a call or for none. */
export const TABLE_ROUTE_ACTIONS: ActionTable = {
  DescribeRouteTables: {
    required: [],
    optional: ['RouteTableIds', 'Filters', 'Offset', 'Limit', 'NeedRouterInfo'],
    handle: ({ state, params, asOfMs }) => {
      const { page, total } = select(state.routeTables.asOf(asOfMs), params, DESCRIBE);
      const hasRoutes = params.flag('NeedRouterInfo') ?? true;
      const tables = page.map((table) => wireTable(hasRoutes ? table : { ...table, routes: [] }));
      return { RouteTableSet: tables, TotalCount: total };
    },
  },
  CreateRoutes: {
    required: ['RouteTableId', 'Routes'],
    optional: [],
    handle: ({ state, params }) => {
      const tableId = params.text('RouteTableId');
      const wanted = ordersOf(params).map((order) => readRouteOrder(state, order, 'RouteDescription'));
      checkRoutes(state, state.routeTables.get(tableId), wanted, []);
      state.routeTables.add(tableId, wanted);
      return { RouteTableSet: [wireTable(state.routeTables.get(tableId))], TotalCount: wanted.length };
    },
  },
  ReplaceRoutes: {
    required: ['RouteTableId', 'Routes'],
    optional: [],
    handle: ({ state, params }) => {
      const tableId = params.text('RouteTableId');
      const orders = ordersOf(params);
      const table = state.routeTables.get(tableId);
      const old = orders.map((order) => routeOf(table, order));
      const wanted = orders.map((order) => readRouteOrder(state, order, 'RouteDescription'));
      checkRoutes(state, table, wanted, old);
      state.routeTables.remove(tableId, old);
      // A replaced route has another id.
      return { OldRouteSet: old.map(wireRoute), NewRouteSet: state.routeTables.add(tableId, wanted).map(wireRoute) };
    },
  },
  DeleteRoutes: {
    required: ['RouteTableId', 'Routes'],
    optional: [],
    handle: ({ state, params }) => {
      const tableId = params.text('RouteTableId');
      const table = state.routeTables.get(tableId);
      const routes = ordersOf(params).map((order) => routeOf(table, order));
      state.routeTables.remove(tableId, routes);
      return { RouteSet: routes.map(wireRoute) };
    },
  },
};

function ordersOf(params: ModelCall['params']): readonly Readonly<Record<string, unknown>>[] {
  const orders = params.objects('Routes');
  if (orders.length > 0 && orders.length <= MOST_PER_CALL) return orders;
  throw new ApiError('InvalidParameterValue.LimitExceeded', `from 1 to ${MOST_PER_CALL} routes a call.`);
}

function checkRoutes(
  state: ModelCall['state'],
  table: ModelRouteTable,
  wanted: readonly Pick<ModelTableRoute, 'cidr' | 'gatewayIp'>[],
  old: readonly ModelTableRoute[],
): void {
  const present = table.routes.filter((route) => !old.includes(route));
  for (const [index, { cidr, gatewayIp }] of wanted.entries()) {
    const other = [...present, ...wanted.slice(0, index)].find((route) => route.cidr === cidr);
    if (other?.gatewayIp === gatewayIp) {
      throw new ApiError('InvalidParameterValue.Duplicate', `The route to ${cidr} by ${gatewayIp} exists already.`);
    }
    if (other !== undefined && state.spec.globalRouteEcmp !== true) {
      throw new ApiError('UnsupportedOperation.Ecmp', `There is a route to ${cidr} already; ECMP is not supported.`);
    }
  }
  const own = present.filter(({ routeType }) => routeType === 'USER');
  if (own.length + wanted.length > state.routeTables.quota) {
    throw new ApiError('LimitExceeded', `The route table may have ${state.routeTables.quota} routes.`);
  }
}

function routeOf(table: ModelRouteTable, order: Readonly<Record<string, unknown>>): ModelTableRoute {
  const id = order['RouteId'];
  const route = table.routes.find(({ routeId }) => routeId === id);
  if (route === undefined) throw new ApiError('ResourceNotFound', `The route ${String(id)} does not exist.`);
  if (route.routeType === 'USER') return route;
  throw new ApiError('UnsupportedOperation.SystemRoute', `The route ${route.routeId} is one of the system.`);
}

function wireTable({ tableId, vpcId, routes }: ModelRouteTable): object {
  return {
    RouteTableId: tableId,
    VpcId: vpcId,
    RouteTableName: tableId,
    Main: false,
    AssociationSet: [],
    RouteSet: routes.map(wireRoute),
  };
}

function wireRoute(route: ModelTableRoute): object {
  return {
    RouteId: route.routeId,
    RouteItemId: `rti-${route.routeId.toString(36).padStart(8, '0')}`,
    DestinationCidrBlock: route.cidr,
    DestinationIpv6CidrBlock: '',
    GatewayType: route.gatewayType,
    GatewayId: route.gatewayIp,
    RouteDescription: route.description,
    RouteType: route.routeType,
    Enabled: route.isDisabled !== true,
    PublishedToVbc: false,
    CreatedTime: writtenTime(route.createdAtMs),
  };
}
