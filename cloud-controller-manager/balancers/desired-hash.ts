import { createHash } from 'node:crypto';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { DesiredTargets } from './desired-targets.ts';

/** Changes with what is done for the same desired load balancer. */
const VERSION = 1;

/**
 * Returns a hash of a load balancer that is as desired. It is on record while nothing has changed for a while, so that the
 * next process need not read it: the order of listeners and targets does not matter.
 */
export function desiredHashOf(loadBalancerId: string, desired: DesiredLoadBalancer): string {
  const {
    source,
    passesToTarget,
    bandwidthMbps,
    isDeleteProtected,
    securityGroupIds,
    sourceGroup,
    listenerName,
    listeners,
    ruleListeners,
  } = desired;
  const sorted = sortedTexts(listeners);
  const ofRules = ruleListeners?.map(({ rules, ...listener }) => [listener, sortedTexts(rules)]);
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
    ...(ofRules === undefined ? [] : [{ ofRules }]),
    ...(bandwidthMbps === undefined && isDeleteProtected === undefined ? [] : [{ bandwidthMbps, isDeleteProtected }]),
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function sortedTexts(all: readonly DesiredTargets[]): readonly string[] {
  return all
    .map(({ targets, ...one }) => JSON.stringify([one, targets?.map((target) => JSON.stringify(target)).toSorted()]))
    .toSorted();
}
