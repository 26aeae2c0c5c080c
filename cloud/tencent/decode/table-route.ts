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
