import type { IngressRule } from '../../cloud/cloud.ts';
import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';
import type { DesiredRuleListener } from './desired-rules.ts';
import type { DesiredTargets } from './desired-targets.ts';
import type { RuleKey } from './target-place.ts';

/** The load balancer that a Service or an Ingress asks for. What is absent is left as it is. */
export type DesiredLoadBalancer = {
  readonly source: BalancerSource;
  readonly passesToTarget?: boolean;
  readonly isDeleteProtected?: boolean;
  /** Most outgoing traffic of a public one, Mbit/s. */
  readonly bandwidthMbps?: number;
  readonly securityGroupIds?: readonly string[];
  /** A security group that is made for the Service, and is then the only one of its load balancer. Its rules absent: as they are. */
  readonly sourceGroup?: { readonly spec: SecurityGroupSpec; readonly rules?: readonly IngressRule[] };
  /** Name of every listener of the owner, and of no other: ownership. */
  readonly listenerName: string;
  readonly listeners: readonly DesiredListener[];
  /** Listeners of layer 7, of an Ingress; absent: the owner is a Service, and has none. */
  readonly ruleListeners?: readonly DesiredRuleListener[];
  /** Present: rules that are not asked for stay as they are, as it is not known whose they are, but for these, which go. */
  readonly onlyLeaving?: readonly RuleKey[];
  /** Most rules of a listener; absent: not known. */
  readonly maxRules?: number;
  /** Whether another load balancer may take its place, with another address. */
  readonly allowsAddressChange: boolean;
  /** Whether targets of listeners that are there change alone: all else that the Service asks for is refused. */
  readonly followsOnly?: boolean;
  /** Whether listeners that another client renamed keep the names that they have; absent: they get `listenerName` again. */
  readonly keepsNames?: boolean;
};

/** Where the load balancer comes from: it is made for the Service, or it exists. */
export type BalancerSource =
  | { readonly kind: 'own'; readonly spec: Omit<LoadBalancerSpec, 'clientToken'> }
  | {
      readonly kind: 'existing';
      readonly loadBalancerId: string;
      readonly vip?: string;
      /** The namespace that it is used for; absent: that of its pool, or those of a group, which are compared elsewhere. */
      readonly namespace?: string;
      /** The subnet that its address has to be of; absent: any, or a public one. */
      readonly subnetId?: string;
      /** It is of a pool: the value of its `OWNER_TAG`. */
      readonly poolOwner?: string;
    };

/** A listener that a Service asks for. */
export type DesiredListener = DesiredTargets & {
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  readonly settings: ListenerSettings;
  /** Whether a listener that is there keeps its settings: they are for a new one alone. */
  readonly keepsSettings?: boolean;
};
