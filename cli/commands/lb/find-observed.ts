import {
  type BalancerOwner,
  isOwnListenerName,
  listenerNameOf,
  ownerOf,
} from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { claimListeners } from '../../../cloud-controller-manager/balancers/claim-listeners.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { readOwnerMark } from '../../../cloud-controller-manager/balancers/owner-mark.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readPorts } from '../../../cloud-controller-manager/services/read-ports.ts';
import { readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { OWNER_TAG } from '../../../crd/cloud-tags.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import type { BalancerFacts, GroupFacts, LbCloud } from './lb-facts.ts';

/** The load balancer of an owner, as the controller observes it, with the health of its targets. */
export type ObservedBalancer = ObservedLoadBalancer & Pick<BalancerFacts, 'health'> & { readonly listenerName: string };

/** Whose load balancer is looked for. */
type SearchedOwner = {
  readonly head: BalancerOwner;
  readonly listenerName: string;
  /** The existing one that an annotation names. */
  readonly namedId?: string;
  /** Keys of the listeners that it asks for; absent: not known. */
  readonly wanted?: ReadonlySet<string>;
};

/** Finds the load balancer of an owner: by its mark, the annotation of an existing one, or the tag of its owner. */
export function findObserved(
  { head, listenerName, namedId, wanted = new Set() }: SearchedOwner,
  clusterId: string | undefined,
  { balancers }: LbCloud,
  groups?: GroupFacts,
): ObservedBalancer | undefined {
  const id = readOwnerMark(head).loadBalancerId ?? namedId;
  const owner = ownerOf(clusterId ?? '', head.uid, head.kind);
  const byId = balancers.find(({ balancer }) => balancer.loadBalancerId === id);
  const owned = balancers.filter(({ balancer }) => balancer.tags[OWNER_TAG] === owner);
  const [byTag] = owned.toSorted((one, other) => one.balancer.createdAtMs - other.balancer.createdAtMs);
  const found = byId ?? byTag;
  if (found === undefined) return undefined;
  const isOwn = found.balancer.tags[OWNER_TAG] === owner;
  const claim = { listenerName, wanted, knownIds: new Set<string>(), isOfOther: isOwnListenerName };
  const listeners = claimListeners({ listeners: found.listeners, isOwn }, found.targets, claim);
  const ids = new Set(listeners.filter(({ name }) => name === listenerName).map(({ listenerId }) => listenerId));
  return {
    ...found,
    listeners,
    targets: found.targets.filter(({ listenerId }) => ids.has(listenerId)),
    isOwn,
    listenerName,
    ...sourceGroupOf(head, found, groups),
  };
}

/** The security group for source ranges, which is then the only one of the load balancer. */
function sourceGroupOf(
  head: BalancerOwner,
  { balancer }: BalancerFacts,
  groups: GroupFacts | undefined,
): Pick<ObservedLoadBalancer, 'sourceGroup'> {
  const [securityGroupId, ...others] = balancer.securityGroupIds;
  const rules = groups?.rules.get(securityGroupId ?? '');
  if (readOwnerMark(head).sourceGroup !== true || others.length > 0) return {};
  return securityGroupId === undefined || rules === undefined
    ? {}
    : { sourceGroup: { securityGroupId, rules, version: '' } };
}

/** Finds the load balancer of a Service. */
export function findObservedService(
  object: KubeObject,
  clusterId: string | undefined,
  cloud: LbCloud,
  groups?: GroupFacts,
): ObservedBalancer | undefined {
  const head = readServiceHead(object);
  const ports = readPorts(object).map(({ protocol, port }) => `${protocol}/${port}`);
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  const listenerName = listenerNameOf(clusterId ?? '', head.uid, 'service');
  const owner = {
    head,
    listenerName,
    wanted: new Set(ports),
    ...(existedLbId === undefined ? {} : { namedId: existedLbId }),
  };
  return findObserved(owner, clusterId, cloud, groups);
}
