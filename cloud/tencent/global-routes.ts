import { IDS_PER_CALL } from '../batches.ts';
import type { RoutePort, VpcRouteSpec } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedRoutes, decodeRoutePage } from './decode/global-route.ts';
import { INSTANCE_GATEWAY, matchRoutes } from './match-routes.ts';
import { readPages } from './paged.ts';

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
        decodeRoutePage(await call('DescribeGlobalRoutes', { Filters, Offset, Limit: IDS_PER_CALL }, context));
      const { objects, isConsistent } = await readPages(readPage, (route) => route.routeId);
      return { routes: objects, isConsistent };
    },
    create: async (VpcId, specs, context) => {
      const answer = await call('CreateGlobalRoutes', { VpcId, GlobalRoutes: specs.map(wireOf) }, context);
      return matchRoutes(specs, decodeCreatedRoutes(answer), 'CreateGlobalRoutes');
    },
    delete: async (VpcId, routes, context) => {
      await call('DeleteGlobalRoutes', { VpcId, GlobalRouteIds: routes.map(({ routeId }) => routeId) }, context);
    },
  };
}

function wireOf({ cidr, gatewayIp, description }: VpcRouteSpec) {
  const route = { GatewayType: INSTANCE_GATEWAY, GatewayId: gatewayIp, DestinationCidrBlock: cidr };
  return { ...route, ...(description === '' ? {} : { Description: description }) };
}
