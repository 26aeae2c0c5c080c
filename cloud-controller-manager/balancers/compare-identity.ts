import type { LoadBalancer } from '../../cloud/load-balancers.ts';
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

function differenceOf(
  what: string,
  wanted: string | undefined,
  present: readonly (string | undefined)[],
): readonly string[] {
  const known = present.filter((one) => one !== undefined && one !== '');
  if (wanted === undefined || known.length === 0 || known.includes(wanted)) return [];
  return [`its ${what} is ${known.join(', ')}, and ${wanted} is asked for`];
}
