import { Address4 } from 'ip-address';
import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { isAddress, isInVpc, readNetwork } from './read-network.ts';
import type { ModelRouteTable, ModelTableRoute } from './route-table-book.ts';

const KEY = ['RouteTableName', 'DestinationCidrBlock', 'GatewayIp'];

/** The APIs of routes of the cluster service. A route has no id and no description; done when answered. */
export const CLUSTER_ROUTE_ACTIONS: ActionTable = {
  DescribeClusterRoutes: {
    required: ['RouteTableName'],
    optional: ['Filters'],
    handle: ({ state, params, asOfMs }) => {
      const name = params.text('RouteTableName');
      const tables = state.clusterRouteTables.asOf(asOfMs);
      const routes = (tables.get(name) ?? { ...state.clusterRouteTables.get(name), routes: [] }).routes;
      const RouteSet = routes.map(({ cidr, gatewayIp }) => ({
        RouteTableName: name,
        DestinationCidrBlock: cidr,
        GatewayIp: gatewayIp,
      }));
      return { RouteSet, TotalCount: RouteSet.length };
    },
  },
  CreateClusterRoute: {
    required: KEY,
    optional: [],
    handle: ({ state, params }) => {
      const { table, cidr, gatewayIp } = keyOf(state, params);
      checkNetwork(state, table, cidr);
      const other = table.routes.find((route) => route.cidr === cidr);
      if (other?.gatewayIp === gatewayIp) {
        throw new ApiError(
          'InternalError.ResourceExistAlready',
          `The route to ${cidr} by ${gatewayIp} exists already.`,
        );
      }
      if (other !== undefined) {
        throw new ApiError('InternalError.CidrConflictWithOtherRoute', `${cidr} conflicts with another route.`);
      }
      if (table.routes.length >= state.clusterRouteTables.quota) {
        throw new ApiError(
          'InternalError.QuotaMaxRtLimit',
          `The table may have ${state.clusterRouteTables.quota} routes.`,
        );
      }
      state.clusterRouteTables.add(table.tableId, [{ cidr, gatewayIp }]);
      return {};
    },
  },
  DeleteClusterRoute: {
    required: KEY,
    optional: [],
    handle: ({ state, params }) => {
      const { table, cidr, gatewayIp } = keyOf(state, params);
      const route = table.routes.find((one) => one.cidr === cidr && one.gatewayIp === gatewayIp);
      if (route === undefined) throw new ApiError('InternalError.DbRecordNotFound', 'The record does not exist.');
      state.clusterRouteTables.remove(table.tableId, [route]);
      return {};
    },
  },
};

type Key = Pick<ModelTableRoute, 'cidr' | 'gatewayIp'> & { readonly table: ModelRouteTable };

function keyOf(state: ModelCall['state'], params: ModelCall['params']): Key {
  const [name, cidr, gatewayIp] = KEY.map((key) => params.text(key));
  const table = state.clusterRouteTables.get(name ?? '');
  if (readNetwork(cidr ?? '') === undefined || !isAddress(gatewayIp ?? '')) {
    throw new ApiError('InvalidParameter', `The route to ${cidr} by ${gatewayIp} is malformed.`);
  }
  return { table, cidr: cidr ?? '', gatewayIp: gatewayIp ?? '' };
}

function checkNetwork(state: ModelCall['state'], { tableId, cidrs }: ModelRouteTable, cidr: string): void {
  const network = new Address4(cidr);
  if (isInVpc(state, network)) {
    throw new ApiError('InternalError.CidrConflictWithVpcCidr', `${cidr} conflicts with the CIDR of the VPC.`);
  }
  if (cidrs.length > 0 && !cidrs.some((one) => network.isInSubnet(new Address4(one)))) {
    throw new ApiError('InternalError.CidrOutOfRouteTable', `${cidr} is outside of the route table ${tableId}.`);
  }
}
