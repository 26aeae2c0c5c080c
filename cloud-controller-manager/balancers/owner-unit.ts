import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { BalancerOwner, OwnerProblem, StatusAddress } from './balancer-owner.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

/** What has a load balancer: one owner, or some that share listeners, of which one has the mark. */
export type OwnerUnit<H extends BalancerOwner> = {
  /** By which its state is kept. */
  readonly key: string;
  readonly object: KubeObject;
  readonly head: H;
  /** Name of its listeners, and of no others. */
  readonly listenerName: string;
  /** Where clients reach it, and what that depends on beside the load balancer. `clash`: listeners of others have some of its ports, or all. */
  readonly addressesOf: (
    balancer: Pick<LoadBalancer, 'vips' | 'domain'>,
    clash?: 'some' | 'all',
  ) => readonly StatusAddress[];
  readonly addressKey: string;
  /** Reports all problems; those that were reported are not repeated. */
  readonly report: (problems: readonly OwnerProblem[]) => void;
  /** Writes where clients reach it, and reports all problems. @throws KubeError */
  readonly publish: (
    object: KubeObject,
    addresses: readonly StatusAddress[],
    problems: readonly OwnerProblem[],
    signal: AbortSignal,
  ) => Promise<void>;
  /** Notes what is there while all is done but for what waits until new targets are healthy. */
  readonly waits?: (observed: ObservedLoadBalancer) => void;
};
