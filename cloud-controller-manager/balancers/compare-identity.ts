import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { BalancerSource } from './desired-load-balancer.ts';

/** What a load balancer cannot change without becoming another one. */
type Identity = { readonly balancer: LoadBalancer; readonly isOwn: boolean };

/**
 * Lists how a load balancer differs from the wanted one in what cannot be changed, for people. What is not asked for, or
 * not reported by the cloud, is no difference.
 */
export function compareIdentity(source: BalancerSource, { balancer, isOwn }: Identity): readonly string[] {
  const { loadBalancerId, vips } = balancer;
  if (source.kind === 'existing') {
    if (loadBalancerId !== source.loadBalancerId)
      return [`the load balancer is ${loadBalancerId}, and ${source.loadBalancerId} is asked for`];
    return differenceOf('address', source.vip, vips);
  }
  if (!isOwn)
    return [`the load balancer is ${loadBalancerId}, which exists for others too, and one of its own is asked for`];
  const { type, subnetId, vip, isp, vpcId } = source.spec;
  if (type !== balancer.type) return [`the load balancer is ${balancer.type}, and ${type} is asked for`];
  return [
    ...differenceOf('VPC', vpcId, [balancer.vpcId]),
    ...differenceOf('subnet', subnetId, [balancer.subnetId]),
    ...differenceOf('address', vip, vips),
    ...differenceOf('provider of the address', isp, [balancer.isp]),
  ];
}

/**
 * Returns the VPC of an own load balancer that is in another one than the wanted. No owner asks for a VPC: --vpc-id does, and
 * while it is wrong nothing may be replaced for that. Undefined: it is in the same.
 */
export function otherVpcOf(source: BalancerSource, { balancer, isOwn }: Identity): string | undefined {
  if (source.kind !== 'own' || !isOwn) return undefined;
  return differenceOf('VPC', source.spec.vpcId, [balancer.vpcId]).length === 0 ? undefined : balancer.vpcId;
}

/**
 * Says why a load balancer on record is not the owner's own, and what to do: its tags were removed, it is of another cluster,
 * or the mark is of another object. Undefined: the owner has no tag to compare with.
 */
export function describeForeign(
  { spec }: Extract<BalancerSource, { readonly kind: 'own' }>,
  { loadBalancerId, tags }: Pick<LoadBalancer, 'loadBalancerId' | 'tags'>,
): string | undefined {
  const [owner, cluster] = [spec.tags?.[OWNER_TAG], spec.tags?.[CLUSTER_TAG]];
  if (owner === undefined || cluster === undefined) return undefined;
  const [itsOwner, itsCluster = itsOwner?.split('/')[0]] = [tags[OWNER_TAG], tags[CLUSTER_TAG]];
  if (itsOwner === undefined)
    return `If it was made for this object, its tags were removed, as by a policy of the account: put the tags ${OWNER_TAG}=${owner} and ${CLUSTER_TAG}=${cluster} on ${loadBalancerId} again, and let the policy leave them; its targets follow meanwhile`;
  if (itsCluster !== cluster)
    return `It was made in the cluster ${itsCluster}, and this is ${cluster}: correct --clusterid, or, if the object was restored from that cluster, remove the annotation ${SERVICE_ANNOTATION.record}, and it gets a load balancer of its own`;
  return `It was made for another object (${OWNER_TAG}=${itsOwner}), so the annotations were copied: remove the annotation ${SERVICE_ANNOTATION.record}, and the object gets a load balancer of its own`;
}

function differenceOf(
  what: string,
  wanted: string | undefined,
  present: readonly (string | undefined)[],
): readonly string[] {
  const known = present.filter((one) => one !== undefined && one !== '');
  if (wanted === undefined || known.length === 0 || known.includes(wanted)) return [];
  return [`its ${what} is ${known.join(', ')}, and ${wanted} is asked for`];
}
