import type { CallContext, Tags } from './cloud.ts';

/** A cloud load balancer (CLB). */
export type LoadBalancer = {
  readonly loadBalancerId: string;
  /** Not always what was asked for: the cloud silently replaces a name that exists. */
  readonly name: string;
  /** OPEN: reached from the internet; INTERNAL: from its VPC. UNKNOWN: of a type that this adapter does not know. */
  readonly type: 'OPEN' | 'INTERNAL' | 'UNKNOWN';
  /** False while it is being created. */
  readonly isNormal: boolean;
  /** Empty while it is being created, and for one that has a domain in the place of addresses. */
  readonly vips: readonly string[];
  /** Public ones of newer accounts have a domain, and no fixed address; '' : none. */
  readonly domain: string;
  readonly vpcId: string;
  /** '' for OPEN. */
  readonly subnetId: string;
  readonly tags: Tags;
  /** In order of precedence. */
  readonly securityGroupIds: readonly string[];
  /** Whether its security groups alone decide; otherwise those of its targets have to admit the clients too. */
  readonly passesToTarget: boolean;
  /** Whether addresses outside of its VPC may be targets. */
  readonly isSnatPro: boolean;
  /** Whether the cloud refuses to delete it. */
  readonly isDeleteProtected: boolean;
  /** Whether it is paid for in advance: the API cannot delete it. */
  readonly isPrepaid: boolean;
  /** Absent: the cloud does not report it. */
  readonly chargeType?: string;
  /** Most outgoing traffic, Mbit/s; absent: the cloud does not report it. */
  readonly bandwidthMbps?: number;
  /** BGP, CMCC, CTCC, CUCC; absent: the cloud does not report it. */
  readonly isp?: string;
  /** Specification of one of the performance type: `clb.c2.medium`; absent: shared. */
  readonly slaType?: string;
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
};

/** How outgoing traffic is charged. */
type ChargeType = 'TRAFFIC_POSTPAID_BY_HOUR' | 'BANDWIDTH_POSTPAID_BY_HOUR' | 'BANDWIDTH_PACKAGE';

/** A new load balancer. What is left out has the cloud's default. */
export type LoadBalancerSpec = {
  readonly type: 'OPEN' | 'INTERNAL';
  /** 1 to 80 characters. */
  readonly name: string;
  readonly vpcId: string;
  /** Required for an INTERNAL one, not allowed for others. */
  readonly subnetId?: string;
  /** At most 20; the balancer has them from its first moment. */
  readonly tags?: Tags;
  /** At most 64 ASCII characters: the same token never creates a second one. Used up when the creation fails. */
  readonly clientToken?: string;
  /** The wanted address, of the subnet; for an INTERNAL one. */
  readonly vip?: string;
  readonly chargeType?: ChargeType;
  /** Most outgoing traffic, Mbit/s; default 10. */
  readonly bandwidthMbps?: number;
  /** `bwp-…`; only with BANDWIDTH_PACKAGE. */
  readonly bandwidthPackageId?: string;
  readonly isp?: 'BGP' | 'CMCC' | 'CTCC' | 'CUCC';
  /** Name or number of the zone that has the address; for an OPEN one. */
  readonly zone?: string;
  /** Main zone, and the zone that takes over, of one in two zones; for an OPEN one. */
  readonly masterZone?: string;
  readonly backupZone?: string;
  /** `clb.c2.medium`. */
  readonly slaType?: string;
  readonly passesToTarget?: boolean;
  readonly isSnatPro?: boolean;
};

/** What of a load balancer can be changed; what is left out stays. */
export type LoadBalancerChanges = {
  readonly name?: string;
  readonly chargeType?: ChargeType;
  readonly bandwidthMbps?: number;
  readonly passesToTarget?: boolean;
  readonly isSnatPro?: boolean;
  readonly isDeleteProtected?: boolean;
};

/** Selects load balancers. Each field narrows the selection. */
export type LoadBalancerQuery = {
  readonly vpcId?: string;
  /** Those that carry this tag with this value. */
  readonly tag?: { readonly key: string; readonly value: string };
  /** Those with exactly this name. No proof that one was not created: the cloud replaces names. */
  readonly name?: string;
};

/** The load balancers that a query selects. */
type LoadBalancerSweep = {
  readonly loadBalancers: readonly LoadBalancer[];
  /** False when the number changed between pages, each time: one that is not listed may exist all the same. */
  readonly isConsistent: boolean;
};

/** Work on a load balancer that the cloud accepted. Plain data: it may be stored and settled after a restart. */
export type LoadBalancerTask = {
  /** The RequestId of the call. */
  readonly taskId: string;
  readonly action: string;
  /** The order of a creation: another name of the same task. */
  readonly dealName?: string;
};

/** The outcome of a task; the ids are those of the created or changed load balancers. `lost`: describe the object. */
export type LoadBalancerOutcome =
  | { readonly kind: 'done'; readonly loadBalancerIds: readonly string[] }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'lost' }
  | { readonly kind: 'pending' };

/** Quotas of the account in the region; absent: the cloud does not report it. */
export type LoadBalancerQuotas = {
  readonly openLoadBalancers?: Quota;
  readonly internalLoadBalancers?: Quota;
  /** Of one load balancer. */
  readonly listeners?: Quota;
  /** Of one listener. */
  readonly rules?: Quota;
  /** Of one listener, or of one rule. */
  readonly targets?: Quota;
  /** Of one load balancer. */
  readonly snatIps?: Quota;
};

/** A quota; `used` is absent where it is one for each object. */
type Quota = { readonly limit: number; readonly used?: number };

/**
 * Load balancers. A change is accepted, not done, when the promise resolves, unless it resolves with nothing: settle the
 * task. The cloud takes one change of a load balancer at a time, of its listeners and targets too; a change that comes
 * meanwhile is repeated until the time of the context is over, then CloudError `busy`. Only a creation has a ClientToken:
 * when another change fails with `resolve`, describe what it should have changed before it is repeated.
 * @see https://www.tencentcloud.com/document/product/214/30685 DescribeLoadBalancers, and its siblings
 */
export type LoadBalancerPort = {
  /**
   * Creates a load balancer. Idempotent for one token. @throws CloudError `quota` with scope `load-balancers` or
   * `subnet`; `never` with code InvalidParameter.ClientTokenLimitExceeded when the creation with this token has failed
   */
  create(spec: LoadBalancerSpec, context: CallContext): Promise<LoadBalancerTask>;
  /** Reads all load balancers that a query selects. */
  find(query: LoadBalancerQuery, context: CallContext): Promise<LoadBalancerSweep>;
  /** Describes load balancers; one that does not exist is absent from the answer. */
  describe(loadBalancerIds: readonly string[], context: CallContext): Promise<readonly LoadBalancer[]>;
  modify(loadBalancerId: string, changes: LoadBalancerChanges, context: CallContext): Promise<LoadBalancerTask>;
  /** Replaces the security groups, in order of precedence; an empty list unbinds all. Done when the promise resolves. */
  setSecurityGroups(loadBalancerId: string, securityGroupIds: readonly string[], context: CallContext): Promise<void>;
  /**
   * Deletes a load balancer with its listeners; never by force. @throws CloudError `gone` when it does not exist; `never`
   * when it is protected, or when the cloud takes the deletion for a mistake (codes that end in CheckRisk)
   */
  delete(loadBalancerId: string, context: CallContext): Promise<LoadBalancerTask>;
  quotas(context: CallContext): Promise<LoadBalancerQuotas>;
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
