import type { RouteState } from './desired.ts';
import { UNREACHABLE_METRIC } from './numbers.ts';

/**
 * Plans a route that refuses packets where no route of a lower metric leads: the sender gets an ICMP error. It has no
 * interface, so it stays when one goes.
 */
export function unreachableRoute(table: number, dst: string, metric = UNREACHABLE_METRIC): RouteState {
  return { table, type: 'unreachable', dst, oif: 0, oifname: '', metric };
}
