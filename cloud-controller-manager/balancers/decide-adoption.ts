import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { type OwnerKind, ownerOf } from './balancer-owner.ts';
import { isKept } from './kept-balancer.ts';
import { blocking, type Notice } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

const REASONS = { service: 'ServiceRefused', ingress: 'IngressRefused' } as const;
/** What names an existing load balancer. */
const ANNOTATIONS = {
  service: 'service.kubernetes.io/tke-existed-lbid',
  ingress: 'kubernetes.io/ingress.existLbId',
} as const;

/**
 * Decides whether a load balancer that exists may be used for an owner. One that TKE made for an object, or this program
 * for another owner, goes when that goes; one that was kept may be used by either kind.
 * @param poolOwner the owner of the pool that the Service shares
 * @returns the refusal, or undefined
 */
export function decideAdoption(
  { balancer, isOwn }: Pick<ObservedLoadBalancer, 'balancer' | 'isOwn'>,
  vpcId: string,
  clusterId: string,
  kind: OwnerKind,
  poolOwner?: string,
): Notice | undefined {
  if (isOwn) return undefined;
  const { loadBalancerId, tags } = balancer;
  const refuse = (why: string): Notice =>
    blocking(
      REASONS[kind],
      `the load balancer ${loadBalancerId} of the annotation ${ANNOTATIONS[kind]} ${why}; name one that was bought for it`,
    );
  if (balancer.vpcId !== vpcId) return refuse(`is in ${balancer.vpcId}, and the cluster is in ${vpcId}`);
  const owner = tags[OWNER_TAG];
  if (owner !== undefined && owner === poolOwner) return undefined;
  // One that was kept is free again; that of another cluster is refused below.
  if (owner !== undefined && !(isKept(balancer) && isOfObject(clusterId, owner)))
    return refuse(`was made for ${owner}`);
  if (tags['tke-createdBy-flag'] === 'yes') return refuse('was made by TKE for another object');
  const cluster = tags[CLUSTER_TAG];
  if (cluster !== undefined && cluster !== clusterId) return refuse(`is used by the cluster ${cluster}`);
  return undefined;
}

/** Tells whether something was made for a Service or an Ingress of a cluster. */
function isOfObject(clusterId: string, owner: string): boolean {
  return (['service', 'ingress'] as const).some((kind) => owner.startsWith(ownerOf(clusterId, '', kind)));
}
