import { boolean, integer, list, optional, record, required } from '../../../runtime/decode.ts';
import type { VpcRoute } from '../../cloud.ts';
import { COUNT, decodeAnswer, NAME, TEXT, withEmptyList } from './fields.ts';

const ROUTE = record(
  {
    RouteId: required(integer(0, Number.MAX_SAFE_INTEGER)),
    DestinationCidrBlock: optional(TEXT),
    GatewayId: optional(TEXT),
    RouteDescription: optional(TEXT),
    RouteType: optional(TEXT),
    Enabled: optional(boolean),
  },
  'ignore',
);
const TABLE = record({ RouteTableId: required(NAME), RouteSet: optional(list(ROUTE)) }, 'ignore');
const TABLES = record({ RouteTableSet: required(list(TABLE)) }, 'ignore');
const PAGE = record({ RouteTableSet: required(list(TABLE)), TotalCount: required(COUNT) }, 'ignore');
const REPLACED = record({ NewRouteSet: required(list(ROUTE)) }, 'ignore');

/**
 * Decodes route tables, by their ids, of an answer of DescribeRouteTables or CreateRoutes. IPv6 routes are left out.
 * @throws CloudError BAD_ANSWER
 */
export function decodeRouteTables(value: unknown, action: string): ReadonlyMap<string, readonly VpcRoute[]> {
  const { RouteTableSet } = decodeAnswer(TABLES, withEmptyList(value, 'RouteTableSet'), action);
  return new Map(RouteTableSet.map(({ RouteTableId, RouteSet }) => [RouteTableId, (RouteSet ?? []).flatMap(routeOf)]));
}

/** A route table, and its routes. */
type TableRoutes = { readonly tableId: string; readonly routes: readonly VpcRoute[] };

/** Decodes a page of route tables. @throws CloudError BAD_ANSWER */
export function decodeRouteTablePage(value: unknown): {
  readonly objects: readonly TableRoutes[];
  readonly total: number;
} {
  const { RouteTableSet, TotalCount } = decodeAnswer(
    PAGE,
    withEmptyList(value, 'RouteTableSet'),
    'DescribeRouteTables',
  );
  const objects = RouteTableSet.map(({ RouteTableId: tableId, RouteSet = [] }) => ({
    tableId,
    routes: RouteSet.flatMap(routeOf),
  }));
  return { objects, total: TotalCount };
}

/** Decodes the new routes of an answer of ReplaceRoutes. @throws CloudError BAD_ANSWER */
export function decodeReplacedRoutes(value: unknown): readonly VpcRoute[] {
  return decodeAnswer(REPLACED, value, 'ReplaceRoutes').NewRouteSet.flatMap(routeOf);
}

type WireRoute = {
  readonly RouteId: number;
  readonly DestinationCidrBlock?: string;
  readonly GatewayId?: string;
  readonly RouteDescription?: string;
  readonly RouteType?: string;
  readonly Enabled?: boolean;
};

/** Only routes of users can be changed. The description of another is left out, so that it never passes as an own one. */
function routeOf(wire: WireRoute): readonly VpcRoute[] {
  const { RouteId, DestinationCidrBlock: cidr = '', GatewayId = '', RouteDescription = '', RouteType = 'USER' } = wire;
  if (cidr === '') return [];
  const route = {
    ...{ routeId: String(RouteId), cidr, gatewayIp: GatewayId },
    ...(wire.Enabled === false ? { isDisabled: true as const } : {}),
  };
  return [
    RouteType === 'USER' ? { ...route, description: RouteDescription } : { ...route, description: '', isSystem: true },
  ];
}

const GLOBAL_ROUTE = record(
  {
    GlobalRouteId: required(NAME),
    DestinationCidrBlock: required(NAME),
    GatewayId: required(NAME),
    Description: optional(TEXT),
  },
  'ignore',
);
const GLOBAL_PAGE = record({ GlobalRouteSet: required(list(GLOBAL_ROUTE)), TotalCount: required(COUNT) }, 'ignore');
const GLOBAL_CREATED = record({ GlobalRouteSet: required(list(GLOBAL_ROUTE)) }, 'ignore');

/** Decodes the answer of DescribeGlobalRoutes. @throws CloudError BAD_ANSWER */
export function decodeGlobalRoutePage(value: unknown): {
  readonly objects: readonly VpcRoute[];
  readonly total: number;
} {
  const page = decodeAnswer(GLOBAL_PAGE, withEmptyList(value, 'GlobalRouteSet'), 'DescribeGlobalRoutes');
  return { objects: page.GlobalRouteSet.map(globalRouteOf), total: page.TotalCount };
}

/** Decodes the answer of CreateGlobalRoutes; the routes are in the order of the request. @throws CloudError BAD_ANSWER */
export function decodeCreatedGlobalRoutes(value: unknown): readonly VpcRoute[] {
  return decodeAnswer(GLOBAL_CREATED, value, 'CreateGlobalRoutes').GlobalRouteSet.map(globalRouteOf);
}

function globalRouteOf(wire: NonNullable<ReturnType<typeof GLOBAL_ROUTE>>): VpcRoute {
  return {
    routeId: wire.GlobalRouteId,
    cidr: wire.DestinationCidrBlock,
    gatewayIp: wire.GatewayId,
    description: wire.Description ?? '',
  };
}

const CLUSTER_ROUTE = record({ DestinationCidrBlock: required(NAME), GatewayIp: required(NAME) }, 'ignore');
const CLUSTER_ROUTES = record({ RouteSet: required(list(CLUSTER_ROUTE)), TotalCount: required(COUNT) }, 'ignore');

/** Decodes the answer of DescribeClusterRoutes, which has no pages. @throws CloudError BAD_CLUSTER_ROUTES */
export function decodeClusterRoutes(value: unknown): {
  readonly routes: readonly Pick<VpcRoute, 'cidr' | 'gatewayIp'>[];
  readonly total: number;
} {
  const { RouteSet, TotalCount } = decodeAnswer(
    CLUSTER_ROUTES,
    withEmptyList(value, 'RouteSet'),
    'DescribeClusterRoutes',
  );
  const routes = RouteSet.map(({ DestinationCidrBlock, GatewayIp }) => ({
    cidr: DestinationCidrBlock,
    gatewayIp: GatewayIp,
  }));
  return { routes, total: TotalCount };
}
