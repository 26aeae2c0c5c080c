import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { StatusAddress } from '../balancers/balancer-owner.ts';

/** Plans where clients reach an Ingress. Empty: the load balancer has no address yet. */
export function planAddresses({ vips, domain }: Pick<LoadBalancer, 'vips' | 'domain'>): readonly StatusAddress[] {
  if (vips.length > 0) return vips.map((ip) => ({ ip }));
  return domain === '' ? [] : [{ hostname: domain }];
}
