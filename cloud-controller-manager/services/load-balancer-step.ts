import type { IngressRule } from '../../cloud/cloud.ts';
import type { ListenerSettings, ListenerSpec } from '../../cloud/listeners.ts';
import type { LoadBalancerChanges, LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';

/** Names a listener of layer 4 of one load balancer: `TCP/80`. */
export type ListenerKey = `${'TCP' | 'UDP'}/${number}`;

/** A target of a listener that may be still to be created. */
export type StepTarget = {
  readonly listener: ListenerKey;
  readonly ip: string;
  readonly port: number;
  readonly instanceId?: string;
};

/** One change of a load balancer: one call of the cloud. */
export type LoadBalancerStep =
  | { readonly kind: 'create'; readonly spec: Omit<LoadBalancerSpec, 'clientToken'> }
  | { readonly kind: 'createSecurityGroup'; readonly spec: SecurityGroupSpec }
  | ContentStep;

/** One change of a load balancer that is there. Of targets that are registered the cloud may refuse some. */
export type ContentStep =
  | { readonly kind: 'register'; readonly targets: readonly (StepTarget & { readonly weight: number })[] }
  | PlainStep;

/** One change of a load balancer that is made as a whole. */
export type PlainStep =
  | { readonly kind: 'modify'; readonly changes: LoadBalancerChanges }
  | { readonly kind: 'setSecurityGroups'; readonly securityGroupIds: readonly string[] }
  | {
      readonly kind: 'replacePolicies';
      readonly securityGroupId: string;
      readonly rules: readonly IngressRule[];
      readonly version: string;
    }
  | { readonly kind: 'deleteSecurityGroup'; readonly securityGroupId: string }
  | { readonly kind: 'createListeners'; readonly spec: ListenerSpec }
  | { readonly kind: 'modifyListener'; readonly listenerId: string; readonly changes: ListenerSettings }
  | { readonly kind: 'setWeights'; readonly targets: readonly (StepTarget & { readonly weight: number })[] }
  | { readonly kind: 'deregister'; readonly targets: readonly StepTarget[] }
  | { readonly kind: 'deleteListeners'; readonly listenerIds: readonly string[] }
  | { readonly kind: 'delete' };
