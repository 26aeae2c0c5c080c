import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Rewrite } from '../../cloud/rewrites.ts';
import type { Target } from '../../cloud/targets.ts';
import type { ObservedGroups } from './diff-security-groups.ts';

/** The load balancer of an owner as the cloud has it. */
export type ObservedLoadBalancer = ObservedGroups & {
  readonly balancer: LoadBalancer;
  /** Whether it was made for the owner. Otherwise it exists for others too, and is never changed or deleted itself. */
  readonly isOwn: boolean;
  /** All listeners, those of others too. */
  readonly listeners: readonly Listener[];
  /** The targets of all listeners that bear the owner's name, and of their rules. */
  readonly targets: readonly Target[];
  /** All redirects, those of others too. Absent: no rule of the owner has one. */
  readonly rewrites?: readonly Rewrite[];
};
