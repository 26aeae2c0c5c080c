import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/services/diff-load-balancer.ts';
import { listenerNameOf, ownerOf } from '../../../cloud-controller-manager/services/plan-load-balancer.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readRecord } from '../../../cloud-controller-manager/services/read-record.ts';
import type { ServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { OWNER_TAG } from '../../../crd/cloud-tags.ts';
import type { BalancerFacts, GroupFacts, LbCloud } from './lb-facts.ts';

/** The load balancer of a Service, as the controller observes it, with the health of its targets. */
export type ObservedBalancer = ObservedLoadBalancer & Pick<BalancerFacts, 'health'> & { readonly listenerName: string };

/** Finds the load balancer of a Service: by its record, the annotation of an existing one, or the tag of its owner. */
export function findObserved(
  head: ServiceHead,
  clusterId: string | undefined,
  { balancers }: LbCloud,
  groups?: GroupFacts,
): ObservedBalancer | undefined {
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  const id = readRecord(head).loadBalancerId ?? existedLbId;
  const owner = ownerOf(clusterId ?? '', head.uid);
  const byId = balancers.find(({ balancer }) => balancer.loadBalancerId === id);
  const owned = balancers.filter(({ balancer }) => balancer.tags[OWNER_TAG] === owner);
  const [byTag] = owned.toSorted((one, other) => one.balancer.createdAtMs - other.balancer.createdAtMs);
  const found = byId ?? byTag;
  if (found === undefined) return undefined;
  const listenerName = listenerNameOf({ clusterId: clusterId ?? '', service: head });
  const ids = new Set(found.listeners.filter(({ name }) => name === listenerName).map(({ listenerId }) => listenerId));
  return {
    ...found,
    targets: found.targets.filter(({ listenerId }) => ids.has(listenerId)),
    isOwn: found.balancer.tags[OWNER_TAG] === owner,
    listenerName,
    ...sourceGroupOf(head, found, groups),
  };
}

/** The security group for source ranges, which is then the only one of the load balancer. */
function sourceGroupOf(
  head: ServiceHead,
  { balancer }: BalancerFacts,
  groups: GroupFacts | undefined,
): Pick<ObservedLoadBalancer, 'sourceGroup'> {
  const [securityGroupId, ...others] = balancer.securityGroupIds;
  const rules = groups?.rules.get(securityGroupId ?? '');
  if (readRecord(head).sourceGroup !== true || others.length > 0) return {};
  return securityGroupId === undefined || rules === undefined
    ? {}
    : { sourceGroup: { securityGroupId, rules, version: '' } };
}
