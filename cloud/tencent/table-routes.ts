import { IDS_PER_CALL } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { RoutePort, VpcRouteSpec } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeVpcLimit } from './decode/others.ts';
import { decodeReplacedRoutes, decodeRouteTablePage, decodeRouteTables } from './decode/table-route.ts';
import { INSTANCE_GATEWAY, matchRoutes } from './match-routes.ts';
import { readPages } from './paged.ts';

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
      const answer = await call(action, { RouteTableId, Routes: specs.map(wireOf) }, context);
      return matchRoutes(specs, decodeRouteTables(answer, action).get(RouteTableId) ?? [], action);
    },
    delete: async (RouteTableId, routes, context) => {
      const Routes = routes.map((route) => ({ ...wireOf(route), RouteId: Number(route.routeId) }));
      await call('DeleteRoutes', { RouteTableId, Routes }, context);
    },
    replace: async (RouteTableId, moves, context) => {
      const action = 'ReplaceRoutes';
      const specs = moves.map(({ route, gatewayIp }) => ({ ...route, gatewayIp }));
      const Routes = specs.map((spec) => ({ ...wireOf(spec), RouteId: Number(spec.routeId) }));
      return matchRoutes(specs, decodeReplacedRoutes(await call(action, { RouteTableId, Routes }, context)), action);
    },
  };
}

function wireOf({ cidr, gatewayIp, description }: VpcRouteSpec) {
  const route = { GatewayType: INSTANCE_GATEWAY, GatewayId: gatewayIp, DestinationCidrBlock: cidr };
  return { ...route, ...(description === '' ? {} : { RouteDescription: description }) };
}
