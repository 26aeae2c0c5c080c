import type { CallContext, Tags } from './cloud.ts';

/** A cloud load balancer. */
export type LoadBalancer = {
  readonly loadBalancerId: string;
  readonly name: string;
  readonly type: 'OPEN' | 'INTERNAL';
  /** False while it is being made. */
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
  /** Of an INTERNAL one, and of no other. */
  readonly subnetId?: string;
  readonly tags?: Tags;
  /** At most 64 ASCII characters: the same token never makes a second one. */
  readonly clientToken?: string;
};

/** Work on a load balancer that the cloud accepted; every change is. Plain data. */
export type LoadBalancerTask = {
  /** The RequestId of the call. */
  readonly taskId: string;
  readonly action: string;
};

/** How such a task ended; the ids are those of what was made or changed. */
export type LoadBalancerOutcome =
  | { readonly kind: 'done'; readonly loadBalancerIds: readonly string[] }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'lost' }
  | { readonly kind: 'pending' };

/** Load balancers. A change waits while another one of the same balancer runs. */
export type LoadBalancerPort = {
  create(spec: LoadBalancerSpec, context: CallContext): Promise<LoadBalancerTask>;
  /** One that does not exist is absent from the answer. */
  describe(loadBalancerIds: readonly string[], context: CallContext): Promise<readonly LoadBalancer[]>;
  /** @throws CloudError when there is none, or it serves too much for the cloud to let it go */
  delete(loadBalancerId: string, context: CallContext): Promise<LoadBalancerTask>;
  /** Waits until the task is over; `pending` when the context's time ran out first. */
  settle(task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome>;
};

/** How many Pods an instance type takes in each mode, as the product counts. */
export type PodLimits = {
  readonly instanceType: string;
  readonly zone: string;
  /** Pods on shared ENIs, without and with static addresses, and on exclusive ENIs. */
  readonly routeEni: number;
  readonly routeEniStatic: number;
  readonly directEni: number;
};
