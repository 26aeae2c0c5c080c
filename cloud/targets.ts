import type { CallContext } from './cloud.ts';
import type { LoadBalancerTask } from './load-balancers.ts';

/** Most targets of one load balancer in one change. */
export const TARGETS_PER_CHANGE = 500;

/** Names a target: one of a listener, or of a rule of it, by its address and port. */
export type TargetRef = {
  readonly listenerId: string;
  /** The rule, of a listener of HTTP or HTTPS; absent for other protocols. */
  readonly ruleId?: string;
  readonly ip: string;
  readonly port: number;
  /** Set if and only if the target is this instance, by its primary address; otherwise it is the address itself. */
  readonly instanceId?: string;
};

/** A target that is to be registered, or whose weight is to be changed. */
export type WeightedTarget = TargetRef & {
  /** 0 to 100; 0: established connections stay, new ones go elsewhere. */
  readonly weight: number;
};

/** A target that is registered. */
export type Target = WeightedTarget & {
  /** CVM (an instance), ENI, GLOBALROUTE (a Pod of the node's own network), CCN and others. */
  readonly kind: string;
  /** The ENI that has the address; absent where the cloud does not say. */
  readonly eniId?: string;
  /** Mark of who registered it; '' : none. */
  readonly tag: string;
  /** Milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly registeredAtMs: number;
};

/** A new target. */
export type TargetSpec = WeightedTarget & {
  /** Mark of who registers it, at most 80 characters. */
  readonly tag?: string;
};

/** Targets of a batch that the cloud refused, without an error. */
export type RefusedTargets = {
  readonly listenerId: string;
  /** Those of the request on that listener: all of them, of all its rules. */
  readonly targets: readonly TargetRef[];
  /** The cloud's own words, of all listeners together. */
  readonly reason: string;
};

/** What checks say about a target. `unchecked`: checks are off, so that it counts as healthy. */
export type HealthState = 'healthy' | 'unhealthy' | 'unknown' | 'unchecked';

/** The health of a target. Packets go to it when it is healthy or unchecked, and its weight is above 0. */
export type TargetHealth = {
  readonly loadBalancerId: string;
  readonly listenerId: string;
  /** As in `TargetRef`. */
  readonly ruleId?: string;
  readonly ip: string;
  readonly port: number;
  readonly state: HealthState;
  /** Absent: the cloud does not say. */
  readonly weight?: number;
};

/** A target that some load balancer has, of whomever. */
export type FoundTarget = {
  readonly loadBalancerId: string;
  readonly listenerId: string;
  /** As in `TargetRef`. */
  readonly ruleId?: string;
  readonly ip: string;
  readonly port: number;
  readonly weight: number;
};

/** Targets of listeners of layer 4, and of rules. Changes are as those of `LoadBalancerPort`. */
export type TargetPort = {
  /** Returns the targets of listeners of a load balancer. @throws CloudError `gone` when one of them does not exist */
  list(loadBalancerId: string, listenerIds: readonly string[], context: CallContext): Promise<readonly Target[]>;
  /**
   * Registers targets, 1 to `TARGETS_PER_CHANGE`, over any listeners of a load balancer: those of one listener all or none.
   * Done when the promise resolves with no refusal. One that is registered already is refused too: list them before a
   * repetition.
   */
  register(
    loadBalancerId: string,
    targets: readonly TargetSpec[],
    context: CallContext,
  ): Promise<readonly RefusedTargets[]>;
  /** Deregisters targets, as `register` does. One that is not registered is refused. */
  deregister(
    loadBalancerId: string,
    targets: readonly TargetRef[],
    context: CallContext,
  ): Promise<readonly RefusedTargets[]>;
  /** Changes weights, of 1 to `TARGETS_PER_CHANGE` targets, all or none. */
  setWeights(
    loadBalancerId: string,
    targets: readonly WeightedTarget[],
    context: CallContext,
  ): Promise<LoadBalancerTask>;
  /** Returns the health of all targets of load balancers. @throws CloudError `gone` when one of them does not exist */
  health(loadBalancerIds: readonly string[], context: CallContext): Promise<readonly TargetHealth[]>;
  /** Finds who has these addresses of a VPC as targets, over all load balancers of the account. */
  findByIps(vpcId: string, ips: readonly string[], context: CallContext): Promise<readonly FoundTarget[]>;
};
