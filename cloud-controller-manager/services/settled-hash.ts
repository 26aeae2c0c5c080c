import { createHash } from 'node:crypto';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';

/** Changes with what is done for the same desired load balancer. */
const VERSION = 1;

/**
 * Returns a hash of a load balancer that is as desired. It is on record while nothing has changed for a while, so that the
 * next process need not read it: the order of listeners and targets does not matter.
 */
export function settledHashOf(loadBalancerId: string, desired: DesiredLoadBalancer): string {
  const { source, passesToTarget, securityGroupIds, sourceGroup, listenerName, listeners } = desired;
  const sorted = listeners
    .map(({ targets, ...listener }) =>
      JSON.stringify([listener, targets?.map((one) => JSON.stringify(one)).toSorted()]),
    )
    .toSorted();
  const text = JSON.stringify([
    VERSION,
    loadBalancerId,
    source,
    passesToTarget,
    securityGroupIds,
    listenerName,
    sorted,
    // A Service without source ranges has the hash that it had before there were any.
    ...(sourceGroup === undefined ? [] : [sourceGroup]),
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
