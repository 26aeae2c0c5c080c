import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Ingress } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';

/**
 * Plans where clients reach a Service. With ipMode VIP kube-proxy serves connections of the cluster itself. A name is always
 * connected to. Empty: the load balancer has no address yet.
 */
export function planIngress(
  { vips, domain }: Pick<LoadBalancer, 'vips' | 'domain'>,
  { preventLoopback = true }: Pick<ServiceSettings, 'preventLoopback'>,
): readonly Ingress[] {
  if (vips.length > 0) return vips.map((ip) => ({ ip, ipMode: preventLoopback ? 'VIP' : 'Proxy' }));
  return domain === '' ? [] : [{ hostname: domain }];
}
