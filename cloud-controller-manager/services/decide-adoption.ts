import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ObservedLoadBalancer } from './diff-load-balancer.ts';
import { blocking, type Notice } from './notice.ts';

/**
 * Decides whether a load balancer that exists may be used for a Service. One that TKE made for an object, or this program
 * for another Service, goes when that goes.
 * @returns the refusal, or undefined
 */
export function decideAdoption(
  { balancer, isOwn }: Pick<ObservedLoadBalancer, 'balancer' | 'isOwn'>,
  vpcId: string,
  clusterId: string,
): Notice | undefined {
  if (isOwn) return undefined;
  const { loadBalancerId, tags } = balancer;
  const refuse = (why: string): Notice =>
    blocking(
      'ServiceRefused',
      `the load balancer ${loadBalancerId} of the annotation service.kubernetes.io/tke-existed-lbid ${why}; name one that was bought for it`,
    );
  if (balancer.vpcId !== vpcId) return refuse(`is in ${balancer.vpcId}, and the cluster is in ${vpcId}`);
  const owner = tags[OWNER_TAG];
  if (owner !== undefined) return refuse(`was made for ${owner}`);
  if (tags['tke-createdBy-flag'] === 'yes') return refuse('was made by TKE for another object');
  const cluster = tags[CLUSTER_TAG];
  if (cluster !== undefined && cluster !== clusterId) return refuse(`is used by the cluster ${cluster}`);
  return undefined;
}
