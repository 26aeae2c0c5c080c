import type { LoadBalancer, LoadBalancerChanges } from '../../cloud/load-balancers.ts';
import { NAMESPACE_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';

/** Begins the name of a load balancer that outlives its Service. */
const PREFIX = 'kept_';
/** Most characters of a name. */
const MAX_NAME = 80;

/** Reports whether a load balancer was kept when its Service went: it is no orphan, and may be used by another one. */
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

/**
 * Returns why a load balancer may not be used for an object of a namespace; undefined: it may. Its tag says which one may, and of
 * one that was kept and has none, as one of an earlier release, its name does.
 */
export function refuseNamespace(
  { name, tags }: Pick<LoadBalancer, 'name' | 'tags'>,
  clusterId: string,
  namespace: string,
): string | undefined {
  const tagged = tags[NAMESPACE_TAG];
  // Without an owner it was bought, and is for everybody.
  if (tagged === undefined && tags[OWNER_TAG] === undefined) return undefined;
  const reserved = tagged ?? namespaceIn(name, clusterId);
  if (reserved === namespace) return undefined;
  const cure = `to use it here, write the tag ${NAMESPACE_TAG}: ${namespace} in the console`;
  if (reserved === undefined) return `was kept, and nothing says for which namespace; ${cure}`;
  return `is for another namespace; ${cure}`;
}

/** Names of load balancers that are made have cluster, namespace and name; none of the latter two has a low line. */
function namespaceIn(name: string, clusterId: string): string | undefined {
  const start = `${PREFIX}${clusterId}_`;
  const [namespace, object] = name.startsWith(start) ? name.slice(start.length).split('_') : [];
  return object === undefined ? undefined : namespace;
}
