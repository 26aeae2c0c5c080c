import { isServedClass } from '../../crd/load-balancer-class.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import type { ServiceHead } from './read-service.ts';

/**
 * What the service controller does about a Service.
 * - `serve`: it has a load balancer of ours.
 * - `release`: it had one, and shall have none: it is being deleted, or of another type.
 * - `ask`: the same, if the cloud has something of it: its finalizer is one that every controller of load balancers sets, and it has
 *   no record of ours.
 * - `ignore`: it is not ours. Nothing of it is read or written.
 */
type ServiceRole = 'serve' | 'release' | 'ask' | 'ignore';

/**
 * Decides what becomes of a Service. A Service with a class is ours if the class is. One that was ours before it got another
 * class leaves its load balancer alone until it is deleted: a flag may have changed by mistake.
 * @param loadBalancerClass the class that is served beside Services without one; '' for none
 * @see k8s.io/cloud-provider controllers/service: there the finalizer alone says that there may be something to release
 */
export function decideService(head: ServiceHead, loadBalancerClass: string): ServiceRole {
  const { type, loadBalancerClass: its, isLeaving, hasFinalizer } = head;
  if (type === 'LoadBalancer') {
    if (!isServedClass(its, loadBalancerClass)) return isLeaving && hasFinalizer && isMade(head) ? 'release' : 'ignore';
    if (!isLeaving) return 'serve';
    return hasFinalizer ? 'release' : 'ignore';
  }
  // A Service of another type has no class: its finalizer was set while it was ours, or another controller's.
  if (!hasFinalizer) return 'ignore';
  return isMade(head) ? 'release' : 'ask';
}

function isMade(head: ServiceHead): boolean {
  const { serial, loadBalancerId } = readOwnerMark(head);
  return serial > 0 || loadBalancerId !== undefined;
}
