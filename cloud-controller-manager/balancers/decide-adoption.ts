import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { OWNER_NAMES, type OwnerKind, ownerOf } from './balancer-owner.ts';
import { isKept, refuseNamespace } from './kept-balancer.ts';
import { blocking, type Notice } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

/** Who wants to use a load balancer, and for what. */
type AdoptionFacts = {
  readonly kind: OwnerKind;
  readonly clusterId: string;
  /** Absent: it is used by the objects of several. */
  readonly namespace?: string;
  /** VPC of the cluster. */
  readonly vpcId: string;
  /** The subnet that its address has to be of; absent: any, or a public one. */
  readonly subnetId?: string;
  /** The owner of the pool that the Service shares. */
  readonly poolOwner?: string;
};

/**
 * Decides whether a load balancer that exists may be used for an owner. One that TKE made for an object, or this program
 * for another owner, goes when that goes; one that was kept may be used by either kind.
 * @returns the refusal, or undefined
 */
export function decideAdoption(
  { balancer, isOwn }: Pick<ObservedLoadBalancer, 'balancer' | 'isOwn'>,
  { kind, clusterId, vpcId, subnetId, poolOwner, namespace }: AdoptionFacts,
): Notice | undefined {
  if (isOwn) return undefined;
  const { loadBalancerId, tags } = balancer;
  const refuse = (why: string): Notice => {
    const place = poolOwner === undefined ? `of the annotation ${OWNER_NAMES[kind].existing}` : 'of the pool';
    const cure = poolOwner === undefined ? 'name one that was bought for it' : 'create the Service again';
    return blocking(OWNER_NAMES[kind].refused, `the load balancer ${loadBalancerId} ${place} ${why}; ${cure}`);
  };
  if (balancer.vpcId !== vpcId) return refuse(`is in ${balancer.vpcId}, and the cluster is in ${vpcId}`);
  if (subnetId !== undefined && balancer.subnetId !== subnetId) {
    const where = balancer.type === 'OPEN' ? 'has a public address' : `has an address of ${balancer.subnetId}`;
    return refuse(`${where}, and one of ${subnetId} is asked for`);
  }
  const owner = tags[OWNER_TAG];
  if (owner !== undefined && owner === poolOwner) return undefined;
  // One that was kept is free again; that of another cluster is refused below.
  if (owner !== undefined && !(isKept(balancer) && isOfObject(clusterId, owner)))
    return refuse(`was made for ${owner}`);
  const why = namespace === undefined ? undefined : refuseNamespace(balancer, clusterId, namespace);
  if (why !== undefined) return refuse(why);
  if (tags['tke-createdBy-flag'] === 'yes') return refuse('was made by TKE for another object');
  const cluster = tags[CLUSTER_TAG];
  if (cluster !== undefined && cluster !== clusterId) return refuse(`is used by the cluster ${cluster}`);
  return undefined;
}

/** Reports whether something was made for a Service or an Ingress of a cluster. */
function isOfObject(clusterId: string, owner: string): boolean {
  return (['service', 'ingress'] as const).some((kind) => owner.startsWith(ownerOf(clusterId, '', kind)));
}
