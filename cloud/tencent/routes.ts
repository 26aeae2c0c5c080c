import { IDS_PER_CALL } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { RoutePort, VpcRoute, VpcRouteSpec } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeVpcLimit } from './decode/others.ts';
import {
  decodeClusterRoutes,
  decodeCreatedGlobalRoutes,
  decodeGlobalRoutePage,
  decodeReplacedRoutes,
  decodeRouteTablePage,
  decodeRouteTables,
} from './decode/routes.ts';
import { readPages } from './paged.ts';
import type { Action } from './requests.ts';

/** The API's name for how many routes each route table may have. */
const QUOTA = 'route-table-max-policies';

/** Creates the port for routes of the route tables of a VPC. A place is the id of a table: `rtb-azd4dt1c`. */
export function createTableRoutePort(call: Caller): RoutePort {
  return {
    maxPerCall: IDS_PER_CALL,
    quota: async (context) => decodeVpcLimit(await call('DescribeVpcLimits', { LimitTypes: [QUOTA] }, context), QUOTA),
    list: async (tableId, context) => {
      const action = 'DescribeRouteTables';
      const request = { RouteTableIds: [tableId], Limit: '1', NeedRouterInfo: true };
      const table = decodeRouteTables(await call(action, request, context), action).get(tableId);
      // The API leaves out what it does not find.
      if (table === undefined) {
        throw classifyError({ code: 'ResourceNotFound', action, text: `there is no route table ${tableId}` });
      }
      // The answer has all routes of a table: they are not paged.
      return { routes: table, isConsistent: true };
    },
    listAll: async (vpcId, context) => {
      const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
      const readPage = async (offset: number) => {
        const page = { Offset: String(offset), Limit: String(IDS_PER_CALL), NeedRouterInfo: true };
        return decodeRouteTablePage(await call('DescribeRouteTables', { Filters, ...page }, context));
      };
      const { objects } = await readPages(readPage, ({ tableId }) => tableId);
      return new Map(objects.map(({ tableId, routes }) => [tableId, routes]));
    },
    create: async (RouteTableId, specs, context) => {
      const action = 'CreateRoutes';
      const answer = await call(action, { RouteTableId, Routes: specs.map(tableWire) }, context);
      return matchRoutes(specs, decodeRouteTables(answer, action).get(RouteTableId) ?? [], action);
    },
    delete: async (RouteTableId, routes, context) => {
      const Routes = routes.map((route) => ({ ...tableWire(route), RouteId: Number(route.routeId) }));
      await call('DeleteRoutes', { RouteTableId, Routes }, context);
    },
    replace: async (RouteTableId, moves, context) => {
      const action = 'ReplaceRoutes';
      const specs = moves.map(({ route, gatewayIp }) => ({ ...route, gatewayIp }));
      const Routes = specs.map((spec) => ({ ...tableWire(spec), RouteId: Number(spec.routeId) }));
      return matchRoutes(specs, decodeReplacedRoutes(await call(action, { RouteTableId, Routes }, context)), action);
    },
  };
}

function tableWire(spec: VpcRouteSpec) {
  return { ...gatewayWire(spec), ...(spec.description === '' ? {} : { RouteDescription: spec.description }) };
}

/**
 * Creates the port for routes of a whole VPC: the "global routes" of the VPC API. A place is the id of a VPC. The API
 * changes only descriptions, so nothing can be replaced.
 */
export function createGlobalRoutePort(call: Caller): RoutePort {
  return {
    maxPerCall: IDS_PER_CALL,
    list: async (vpcId, context) => {
      const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
      const readPage = async (Offset: number) =>
        decodeGlobalRoutePage(await call('DescribeGlobalRoutes', { Filters, Offset, Limit: IDS_PER_CALL }, context));
      const { objects, isConsistent } = await readPages(readPage, (route) => route.routeId);
      return { routes: objects, isConsistent };
    },
    create: async (VpcId, specs, context) => {
      const answer = await call('CreateGlobalRoutes', { VpcId, GlobalRoutes: specs.map(globalWire) }, context);
      return matchRoutes(specs, decodeCreatedGlobalRoutes(answer), 'CreateGlobalRoutes');
    },
    delete: async (VpcId, routes, context) => {
      await call('DeleteGlobalRoutes', { VpcId, GlobalRouteIds: routes.map(({ routeId }) => routeId) }, context);
    },
  };
}

function globalWire(spec: VpcRouteSpec) {
  return { ...gatewayWire(spec), ...(spec.description === '' ? {} : { Description: spec.description }) };
}

/** The API has no batches. */
const MAX_PER_CALL = 1;

/**
 * Creates the port for routes of the cluster service (TKE). A place is the name of a route table of that service, which
 * is the id of the cluster for those that it made itself. The API has no ids and no descriptions.
 */
export function createClusterRoutePort(call: Caller): RoutePort {
  const clusterWire = (RouteTableName: string, { cidr, gatewayIp }: Pick<VpcRoute, 'cidr' | 'gatewayIp'>) => ({
    RouteTableName,
    DestinationCidrBlock: cidr,
    GatewayIp: gatewayIp,
  });
  const routeOf = ({ cidr, gatewayIp }: Pick<VpcRouteSpec, 'cidr' | 'gatewayIp'>): VpcRoute => ({
    routeId: `${cidr} by ${gatewayIp}`,
    cidr,
    gatewayIp,
    description: '',
  });
  return {
    maxPerCall: MAX_PER_CALL,
    list: async (RouteTableName, context) => {
      const { routes, total } = decodeClusterRoutes(await call('DescribeClusterRoutes', { RouteTableName }, context));
      return { routes: routes.map(routeOf), isConsistent: routes.length === total };
    },
    create: async (table, specs, context) => {
      for (const spec of specs) await call('CreateClusterRoute', clusterWire(table, spec), context);
      return specs.map(routeOf);
    },
    delete: async (table, routes, context) => {
      for (const route of routes) await call('DeleteClusterRoute', clusterWire(table, route), context);
    },
  };
}

/** Kind of a next hop that is an instance, by its private address. */
const INSTANCE_GATEWAY = 'NORMAL_CVM';

function gatewayWire({ cidr, gatewayIp }: Pick<VpcRouteSpec, 'cidr' | 'gatewayIp'>) {
  return { GatewayType: INSTANCE_GATEWAY, GatewayId: gatewayIp, DestinationCidrBlock: cidr };
}

/**
 * Finds the route of each wanted one in an answer; the result is in the order of `wanted`.
 * @throws CloudError BAD_ANSWER when one is missing
 */
function matchRoutes(
  wanted: readonly Pick<VpcRouteSpec, 'cidr' | 'gatewayIp'>[],
  routes: readonly VpcRoute[],
  action: Action,
): readonly VpcRoute[] {
  const byKey = new Map(routes.map((route) => [keyOf(route), route]));
  return wanted.map((one) => {
    const route = byKey.get(keyOf(one));
    if (route !== undefined) return route;
    const text = `the answer lacks the route to ${one.cidr} by ${one.gatewayIp}`;
    throw classifyError({ code: 'BAD_ANSWER', action, text });
  });
}

function keyOf({ cidr, gatewayIp }: Pick<VpcRouteSpec, 'cidr' | 'gatewayIp'>): string {
  return `${cidr} ${gatewayIp}`;
}
