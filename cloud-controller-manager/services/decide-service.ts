import { isServedClass } from '../../crd/load-balancer-class.ts';
import type { ServiceHead } from './read-service.ts';

/**
 * What the service controller does about a Service.
 * - `serve`: it has a load balancer of ours.
 * - `release`: it had one, and shall have none: it is being deleted, or of another type.
 * - `ignore`: it is not ours. Nothing of it is read or written.
 */
type ServiceRole = 'serve' | 'release' | 'ignore';

/**
 * Decides what becomes of a Service. A Service with a class is ours if the class is.
 * @param loadBalancerClass the class that is served beside Services without one; '' for none
 * @see k8s.io/cloud-provider controllers/service: the finalizer alone says that there may be something to release
 */
export function decideService(
  { type, loadBalancerClass: its, isLeaving, hasFinalizer }: ServiceHead,
  loadBalancerClass: string,
): ServiceRole {
  if (type === 'LoadBalancer') {
    if (!isServedClass(its, loadBalancerClass)) return 'ignore';
    if (!isLeaving) return 'serve';
  }
  // A Service of another type has no class: its finalizer was set while it was ours.
  return hasFinalizer ? 'release' : 'ignore';
}
