import type { IngressRule } from '../../cloud/cloud.ts';
import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';

/** The load balancer that a Service asks for. What is absent is left as it is. */
export type DesiredLoadBalancer = {
  readonly source: BalancerSource;
  readonly passesToTarget?: boolean;
  readonly securityGroupIds?: readonly string[];
  /** A security group that is made for the Service, and is then the only one of its load balancer. Its rules absent: as they are. */
  readonly sourceGroup?: { readonly spec: SecurityGroupSpec; readonly rules?: readonly IngressRule[] };
  /** Name of every listener of the Service, and of no other: ownership. */
  readonly listenerName: string;
  readonly listeners: readonly DesiredListener[];
  /** Whether another load balancer may take its place, with another address. */
  readonly allowsAddressChange: boolean;
  /** Whether targets of listeners that are there change alone: all else that the Service asks for is refused. */
  readonly followsOnly?: boolean;
};

/** Where the load balancer comes from: it is made for the Service, or it exists. */
export type BalancerSource =
  | { readonly kind: 'own'; readonly spec: Omit<LoadBalancerSpec, 'clientToken'> }
  | { readonly kind: 'existing'; readonly loadBalancerId: string; readonly vip?: string };

/** A listener that a Service asks for. */
export type DesiredListener = {
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  readonly settings: ListenerSettings;
  /** Absent: the targets stay as they are. */
  readonly targets?: readonly DesiredTarget[];
  /** Addresses whose targets, where they have a weight, stay as they are though they are not asked for. */
  readonly keptIps?: readonly string[];
  /** Whether targets that are instances, and not asked for, stay as they are. */
  readonly keepsNodes?: boolean;
  /** Most targets that it may have, those with weight 0 too; absent: not known. */
  readonly maxTargets?: number;
};

/**
 * A target that a Service asks for. Weight 0: it stays if it is registered, and is not registered anew. `asIs`: nothing of
 * it changes, and it is not registered.
 */
export type DesiredTarget = {
  readonly ip: string;
  readonly port: number;
  readonly instanceId?: string;
  readonly weight: number | 'asIs';
};
