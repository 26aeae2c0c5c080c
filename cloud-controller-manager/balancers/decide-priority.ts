import type { CallPriority } from '../../cloud/cloud.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredPlacesOf } from './desired-places.ts';

/**
 * Decides whose calls go first. A target that is to get no connections any more goes before all others: what is behind it is
 * about to end. A comparison of what has not changed goes last.
 * @param before what was in force; undefined: not known
 */
export function decidePriority(before: DesiredLoadBalancer | undefined, desired: DesiredLoadBalancer): CallPriority {
  if (before === undefined) return 'warm';
  const serving = servingOf(desired);
  for (const one of servingOf(before)) if (!serving.has(one)) return 'pod';
  return JSON.stringify(before) === JSON.stringify(desired) ? 'gc' : 'warm';
}

function servingOf(desired: DesiredLoadBalancer): ReadonlySet<string> {
  const serving = new Set<string>();
  for (const { place, targets = [] } of desiredPlacesOf(desired))
    for (const one of targets) if (one.weight !== 0) serving.add(`${place} ${one.ip}:${one.port}`);
  return serving;
}
