import { list, record, required } from '../../../runtime/decode.ts';
import type { VpcRoute } from '../../cloud.ts';
import { COUNT, decodeAnswer, NAME, withEmptyList } from './fields.ts';

const ROUTE = record({ DestinationCidrBlock: required(NAME), GatewayIp: required(NAME) }, 'ignore');
const ANSWER = record({ RouteSet: required(list(ROUTE)), TotalCount: required(COUNT) }, 'ignore');

/** Decodes the answer of DescribeClusterRoutes, which has no pages. @throws CloudError BAD_ANSWER */
export function decodeClusterRoutes(value: unknown): {
  readonly routes: readonly Pick<VpcRoute, 'cidr' | 'gatewayIp'>[];
  readonly total: number;
} {
  const { RouteSet, TotalCount } = decodeAnswer(ANSWER, withEmptyList(value, 'RouteSet'), 'DescribeClusterRoutes');
  const routes = RouteSet.map(({ DestinationCidrBlock, GatewayIp }) => ({
    cidr: DestinationCidrBlock,
    gatewayIp: GatewayIp,
  }));
  return { routes, total: TotalCount };
}
