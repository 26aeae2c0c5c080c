import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { StatusAddress } from '../balancers/balancer-owner.ts';
import type { ServiceSettings } from './served-annotations.ts';

/**
 * Plans where clients reach a Service. With ipMode VIP kube-proxy serves connections of the cluster itself. A name is always
 * connected to. Empty: the load balancer has no address yet.
 */
export function planIngress(
  { vips, domain }: Pick<LoadBalancer, 'vips' | 'domain'>,
  { preventLoopback = true, pool, poolPorts }: Pick<ServiceSettings, 'preventLoopback' | 'pool' | 'poolPorts'>,
): readonly StatusAddress[] {
  // Where ports are allotted, the address has ports of other Services under the numbers of this one.
  const isShort = preventLoopback && !(pool !== undefined && poolPorts === 'allotted');
  if (vips.length > 0) return vips.map((ip) => ({ ip, ipMode: isShort ? 'VIP' : 'Proxy' }));
  return domain === '' ? [] : [{ hostname: domain }];
}
