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
  readonly listeners: readonly ObservedListener[];
  /** The targets of all listeners of the owner, and of their rules. */
  readonly targets: readonly Target[];
  /** The targets of listeners without a known owner: addresses of Pods among them stay published. Absent: none. */
  readonly otherTargets?: readonly Target[];
  /** Listeners without a known owner whose targets could not be read: `otherTargets` lacks them. Absent: none. */
  readonly unreadIds?: readonly string[];
  /** All redirects, those of others too. Absent: no rule of the owner has one. */
  readonly rewrites?: readonly Rewrite[];
};

/** A listener. Its `name` says whose it is: that of the owner's listeners for what is the owner's, whatever it is called. */
export type ObservedListener = Listener & {
  /** What the cloud has as its name, where another client renamed it; absent: `name`. */
  readonly calledAs?: string;
};

/** Lists the targets of all listeners that may be the owner's. */
export function allTargetsOf({
  targets,
  otherTargets = [],
}: Pick<ObservedLoadBalancer, 'targets' | 'otherTargets'>): readonly Target[] {
  return [...targets, ...otherTargets];
}
