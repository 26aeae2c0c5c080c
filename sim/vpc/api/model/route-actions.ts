import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { writtenTime } from './limits.ts';
import { isAddress, isInVpc, readNetwork } from './read-network.ts';
import type { ModelGlobalRoute } from './types.ts';

const DESCRIBE: DescribeRules<ModelGlobalRoute> = {
  idField: 'GlobalRouteIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  fields: {
    'global-route-id': (route) => [route.routeId],
    'vpc-id': (route) => [route.vpcId],
    'gateway-id': (route) => [route.gatewayIp],
    'gateway-type': () => [GATEWAY_TYPE],
    'dest-cidr': (route) => [route.cidr],
    description: (route) => [route.description],
  },
};

/** The only kind of next hop that the API documents: an instance, by its address. */
const GATEWAY_TYPE = 'NORMAL_CVM';
const MOST_PER_CALL = 100;

/** The APIs of routes of a whole VPC. IPv4 only; done when answered. */
export const ROUTE_ACTIONS: ActionTable = {
  CreateGlobalRoutes: { required: ['VpcId', 'GlobalRoutes'], optional: [], handle: create },
  DescribeGlobalRoutes: {
    required: [],
    optional: ['GlobalRouteIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const routes = asOfMs === undefined ? state.globalRoutes : state.globalRoutesAsOf(asOfMs);
      const { page, total } = select(routes, params, DESCRIBE);
      return { GlobalRouteSet: page.map(wireRoute), TotalCount: total };
    },
  },
  ModifyGlobalRoutes: { required: ['VpcId', 'GlobalRoutes'], optional: [], handle: modify },
  DeleteGlobalRoutes: {
    required: ['VpcId', 'GlobalRouteIds'],
    optional: [],
    handle: ({ state, params }) => {
      const ids = params.texts('GlobalRouteIds', MOST_PER_CALL);
      // None is deleted when one does not exist.
      const routes = ids.map((id) => state.globalRoute(params.text('VpcId'), id));
      for (const route of routes) state.removeGlobalRoute(route);
      return {};
    },
  },
};

function create({ state, params }: ModelCall): object {
  const vpcId = vpcOf(state, params);
  const orders = params.objects('GlobalRoutes');
  if (orders.length === 0 || orders.length > MOST_PER_CALL) {
    throw new ApiError('InvalidParameterValue.LimitExceeded', `from 1 to ${MOST_PER_CALL} routes a call.`);
  }
  const wanted = orders.map((order) => readRouteOrder(state, order, 'Description'));
  const present = [...state.globalRoutes.values()].filter((route) => route.vpcId === vpcId);
  for (const [index, { cidr, gatewayIp }] of wanted.entries()) {
    for (const other of [...present, ...wanted.slice(0, index)]) {
      if (other.cidr !== cidr) continue;
      if (other.gatewayIp === gatewayIp) {
        throw new ApiError('InvalidParameterValue.Duplicate', `The route to ${cidr} by ${gatewayIp} exists already.`);
      }
      if (state.spec.globalRouteEcmp !== true) {
        throw new ApiError('UnsupportedOperation.Ecmp', `There is a route to ${cidr} already; ECMP is not supported.`);
      }
    }
  }
  if (present.length + wanted.length > state.globalRouteQuota) {
    throw new ApiError('LimitExceeded', `The VPC may have ${state.globalRouteQuota} global routes.`);
  }
  return { GlobalRouteSet: wanted.map((order) => wireRoute(state.addGlobalRoute({ vpcId, ...order }))) };
}

/** Only the description can be changed: a route is moved by deleting it and creating another. */
function modify({ state, params }: ModelCall): object {
  const changes = params.objects('GlobalRoutes').map((order) => {
    const route = state.globalRoute(params.text('VpcId'), String(order['GlobalRouteId'] ?? ''));
    const wire = wireRoute(route);
    const isOther = ['DestinationCidrBlock', 'GatewayType', 'GatewayId'].some(
      (key) => order[key] !== undefined && order[key] !== Reflect.get(wire, key),
    );
    if (isOther) throw new ApiError('UnsupportedOperation', 'Only the description of a global route can be modified.');
    return { route, description: String(order['Description'] ?? route.description) };
  });
  for (const { route, description } of changes) route.description = description;
  return {};
}

/** A route that is to be made. */
type RouteOrder = { readonly cidr: string; readonly gatewayIp: string; readonly description: string };

/** Reads a route of a request; `textKey` is the field of its description. @throws ApiError */
export function readRouteOrder(
  state: ModelCall['state'],
  order: Readonly<Record<string, unknown>>,
  textKey: 'Description' | 'RouteDescription',
): RouteOrder {
  const [cidr, type, gatewayIp] = ['DestinationCidrBlock', 'GatewayType', 'GatewayId'].map((key) => {
    const value = order[key];
    if (typeof value !== 'string' || value === '') {
      throw new ApiError('MissingParameter', `The parameter ${key} of a route is missing.`);
    }
    return value;
  });
  if (type !== GATEWAY_TYPE) throw new ApiError('InvalidParameterValue', `The gateway type ${type} is not supported.`);
  const network = readNetwork(cidr ?? '');
  if (network === undefined) {
    throw new ApiError('InvalidParameterValue.Malformed', `DestinationCidrBlock ${cidr} is malformed.`);
  }
  if (!isAddress(gatewayIp ?? '')) {
    throw new ApiError('InvalidParameterValue.Malformed', `GatewayId ${gatewayIp} is malformed.`);
  }
  if (isInVpc(state, network)) {
    throw new ApiError('InvalidParameterValue.VpcCidrConflict', `${cidr} conflicts with the CIDR of the VPC.`);
  }
  return { cidr: cidr ?? '', gatewayIp: gatewayIp ?? '', description: String(order[textKey] ?? '') };
}

function vpcOf(state: ModelCall['state'], params: ModelCall['params']): string {
  const vpcId = params.text('VpcId');
  if (vpcId !== state.spec.vpcId) throw new ApiError('ResourceNotFound', `The VPC ${vpcId} does not exist.`);
  return vpcId;
}

function wireRoute(route: ModelGlobalRoute): object {
  return {
    VpcId: route.vpcId,
    GlobalRouteId: route.routeId,
    DestinationCidrBlock: route.cidr,
    GatewayType: GATEWAY_TYPE,
    GatewayId: route.gatewayIp,
    Description: route.description,
    CreatedTime: writtenTime(route.createdAtMs),
    SubnetRouteAlgorithm: 'ECMP_QUINTUPLE_HASH',
  };
}
