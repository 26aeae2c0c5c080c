import type { RoutePort, VpcRoute, VpcRouteSpec } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeClusterRoutes } from './decode/cluster-route.ts';

/** The API has no batches. */
const MAX_PER_CALL = 1;

/**
 * Creates the port for routes of the cluster service (TKE). A place is the name of a route table of that service, which
 * is the id of the cluster for those that it made itself. The API has no ids and no descriptions.
 */
export function createClusterRoutePort(call: Caller): RoutePort {
  const keyOf = (RouteTableName: string, { cidr, gatewayIp }: Pick<VpcRoute, 'cidr' | 'gatewayIp'>) => ({
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
      for (const spec of specs) await call('CreateClusterRoute', keyOf(table, spec), context);
      return specs.map(routeOf);
    },
    delete: async (table, routes, context) => {
      for (const route of routes) await call('DeleteClusterRoute', keyOf(table, route), context);
    },
  };
}
