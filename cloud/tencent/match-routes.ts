import { classifyError } from '../classify-error.ts';
import type { VpcRoute, VpcRouteSpec } from '../cloud.ts';
import type { Action } from './requests.ts';

/** Kind of a next hop that is an instance, by its private address. */
export const INSTANCE_GATEWAY = 'NORMAL_CVM';

/**
 * Finds the route of each wanted one in an answer; the result is in the order of `wanted`.
 * @throws CloudError BAD_ANSWER when one is missing
 */
export function matchRoutes(
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
