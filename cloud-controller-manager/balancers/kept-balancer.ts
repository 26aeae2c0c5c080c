import type { LoadBalancer, LoadBalancerChanges } from '../../cloud/load-balancers.ts';

/** Begins the name of a load balancer that outlives its Service. */
const PREFIX = 'kept_';
/** Most characters of a name. */
const MAX_NAME = 80;

/** Tells whether a load balancer was kept when its Service went: it is no orphan, and may be used by another one. */
export function isKept({ name, isDeleteProtected }: Pick<LoadBalancer, 'name' | 'isDeleteProtected'>): boolean {
  return isDeleteProtected && name.startsWith(PREFIX);
}

/** Returns what marks a load balancer as kept; undefined: it is marked. */
export function keepingChanges(
  balancer: Pick<LoadBalancer, 'name' | 'isDeleteProtected'>,
): LoadBalancerChanges | undefined {
  if (isKept(balancer)) return undefined;
  const { name } = balancer;
  return { isDeleteProtected: true, name: name.startsWith(PREFIX) ? name : `${PREFIX}${name}`.slice(0, MAX_NAME) };
}
