import { list, optional, record, required } from '../../../runtime/decode.ts';
import type { VpcRoute } from '../../cloud.ts';
import { COUNT, decodeAnswer, NAME, TEXT, withEmptyList } from './fields.ts';

const ROUTE = record(
  {
    GlobalRouteId: required(NAME),
    DestinationCidrBlock: required(NAME),
    GatewayId: required(NAME),
    Description: optional(TEXT),
  },
  'ignore',
);
const PAGE = record({ GlobalRouteSet: required(list(ROUTE)), TotalCount: required(COUNT) }, 'ignore');
const CREATED = record({ GlobalRouteSet: required(list(ROUTE)) }, 'ignore');

/** Decodes the answer of DescribeGlobalRoutes. @throws CloudError BAD_ANSWER */
export function decodeRoutePage(value: unknown): { readonly objects: readonly VpcRoute[]; readonly total: number } {
  const page = decodeAnswer(PAGE, withEmptyList(value, 'GlobalRouteSet'), 'DescribeGlobalRoutes');
  return { objects: page.GlobalRouteSet.map(routeOf), total: page.TotalCount };
}

/** Decodes the answer of CreateGlobalRoutes; the routes are in the order of the request. @throws CloudError BAD_ANSWER */
export function decodeCreatedRoutes(value: unknown): readonly VpcRoute[] {
  return decodeAnswer(CREATED, value, 'CreateGlobalRoutes').GlobalRouteSet.map(routeOf);
}

type WireRoute = {
  readonly GlobalRouteId: string;
  readonly DestinationCidrBlock: string;
  readonly GatewayId: string;
  readonly Description?: string;
};

function routeOf(wire: WireRoute): VpcRoute {
  return {
    routeId: wire.GlobalRouteId,
    cidr: wire.DestinationCidrBlock,
    gatewayIp: wire.GatewayId,
    description: wire.Description ?? '',
  };
}
