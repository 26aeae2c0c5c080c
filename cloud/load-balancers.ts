import type { CallContext, Tags } from './cloud.ts';

/** A cloud load balancer. */
export type LoadBalancer = {
  readonly loadBalancerId: string;
  readonly name: string;
  readonly type: 'OPEN' | 'INTERNAL';
  /** False while it is being created. */
  readonly isNormal: boolean;
  readonly vips: readonly string[];
  readonly vpcId: string;
  readonly tags: Tags;
};

/** A new load balancer. */
export type LoadBalancerSpec = {
  readonly type: 'OPEN' | 'INTERNAL';
  /** At most 80 characters. */
  readonly name: string;
  readonly vpcId: string;
  /** Required for an INTERNAL one, not allowed for others. */
  readonly subnetId?: string;
  readonly tags?: Tags;
  /** At most 64 ASCII characters: the same token never creates a second one. */
  readonly clientToken?: string;
};

/** Work on a load balancer that the cloud accepted; every change is such a task. Plain data. */
type LoadBalancerTask = {
  /** The RequestId of the call. */
  readonly taskId: string;
  readonly action: string;
};

/** The outcome of a task; the ids are those of the created or changed load balancers. */
export type LoadBalancerOutcome =
  | { readonly kind: 'done'; readonly loadBalancerIds: readonly string[] }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'lost' }
  | { readonly kind: 'pending' };

/** Load balancers. A change waits while another change of the same balancer runs. */
export type LoadBalancerPort = {
  create(spec: LoadBalancerSpec, context: CallContext): Promise<LoadBalancerTask>;
  /** Describes load balancers; one that does not exist is absent from the answer. */
  describe(loadBalancerIds: readonly string[], context: CallContext): Promise<readonly LoadBalancer[]>;
  /** Deletes a load balancer. @throws CloudError when it does not exist, or is in use so that the cloud refuses */
  delete(loadBalancerId: string, context: CallContext): Promise<LoadBalancerTask>;
  /** Waits until the task has ended; `pending` when the time of the context ran out first. */
  settle(task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome>;
};

/** How many Pods an instance type supports in each mode, as Tencent's product counts. */
export type PodLimits = {
  readonly instanceType: string;
  readonly zone: string;
  /** Pods on shared ENIs without static addresses; the next two: with static addresses, and on exclusive ENIs. */
  readonly routeEni: number;
  readonly routeEniStatic: number;
  readonly directEni: number;
};
