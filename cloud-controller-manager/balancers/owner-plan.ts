import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { DesiredRuleListener } from './desired-rules.ts';
import type { Notice } from './notice.ts';
import type { UnboundPods } from './plan-pod-targets.ts';

/** What is desired of an owner; without it nothing is changed. */
export type OwnerPlan = {
  readonly desired?: DesiredLoadBalancer;
  readonly notices: readonly Notice[];
  /** What its listeners would be, also without `desired`; absent: that is not known. */
  readonly listeners?: readonly DesiredListener[];
  /** The same of listeners of layer 7; absent: it has none, or that is not known. */
  readonly ruleListeners?: readonly DesiredRuleListener[] | undefined;
  /** Present where Pods are the backends. */
  readonly unbound?: UnboundPods;
  /** When it is planned again, though nothing changes. */
  readonly afterMs?: number;
};

/** What was planned for the readiness gates: a load balancer, or nothing, as the owner is refused. */
export type GatePlan =
  | 'refused'
  | {
      readonly desired: DesiredLoadBalancer;
      readonly unbound: UnboundPods;
      /** Addresses that the cloud refused as targets. */
      readonly refused?: readonly string[];
    };

/** The readiness gates, as a controller tells them of its owners. Keys are those of `OwnerUnit`. */
export type OwnerGates = {
  /** Notes what is planned. */
  readonly note: (key: string, plan: GatePlan) => void;
  /** Notes that a load balancer cannot be changed until a person changes something. */
  readonly fail: (key: string) => void;
  /** Notes that a load balancer is as planned, or can be made so. */
  readonly recover: (key: string) => void;
  /** Notes that there is no load balancer that leads to Pods. */
  readonly forget: (key: string) => void;
};
