import type { CloudError } from './cloud-error.ts';
import type { EniLimits } from './eni-limits.ts';

/** What waits for the call: a Pod, the warm pool, or background work. Served in this order. */
export type CallPriority = 'pod' | 'warm' | 'gc';

/** The context of a call: its urgency and its limits. */
export type CallContext = {
  readonly priority: CallPriority;
  /** Callers of equal priority are served in turn by owner; the name of a node, or a namespace. */
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Most milliseconds for the whole call, its waits and retries included; default 60,000. */
  readonly timeoutMs?: number;
  /** Called when a change with a ClientToken that may have had an effect is sent again: its answer may be that of before. */
  readonly onRepeat?: () => void;
};

/** A CVM instance, with the properties that its ENIs and its Node depend on. */
export type Instance = {
  readonly instanceId: string;
  readonly instanceType: string;
  readonly cores: number;
  /** Name of the zone: `ap-guangzhou-3`. */
  readonly zone: string;
  readonly vpcId: string;
  readonly subnetId: string;
  /** PENDING, LAUNCH_FAILED, RUNNING, STOPPED, STARTING, STOPPING, REBOOTING, SHUTDOWN, TERMINATING. */
  readonly state: string;
  /** Addresses of the primary ENI. */
  readonly privateIps: readonly string[];
  readonly securityGroupIds: readonly string[];
  /** Absent: the cloud does not report it. */
  readonly memoryGib?: number;
  /** Public addresses of the primary ENI; absent: none. */
  readonly publicIps?: readonly string[];
  /** IPv6 addresses in their shortest form; absent: none. */
  readonly ipv6s?: readonly string[];
  /** NORMAL, EXPIRED (not paid), PROTECTIVELY_ISOLATED; absent: the cloud does not report it. */
  readonly restrictState?: string;
};

/** A zone of the region: its name, `ap-guangzhou-3`, and its number, `100003`. */
export type Zone = { readonly name: string; readonly number: string };

/** State of an ENI. `AVAILABLE` with an attachment is attached. */
export type EniState = 'PENDING' | 'AVAILABLE' | 'ATTACHING' | 'DETACHING' | 'DELETING';

/** An address of an ENI. */
export type EniIp = {
  readonly ip: string;
  readonly isPrimary: boolean;
  readonly state: 'PENDING' | 'AVAILABLE' | 'MIGRATING' | 'DELETING';
  /** The EIP bound to it. */
  readonly eipId?: string;
  readonly publicIp?: string;
};

/** Tags by key. */
export type Tags = Readonly<Record<string, string>>;

/** An elastic network interface. */
export type Eni = {
  readonly eniId: string;
  readonly name: string;
  readonly description: string;
  /** Lower case. */
  readonly mac: string;
  readonly vpcId: string;
  readonly subnetId: string;
  readonly zone: string;
  readonly isPrimary: boolean;
  readonly state: EniState;
  /** The instance that it is attached to, or is being attached to or detached from. */
  readonly attachment?: {
    readonly instanceId: string;
    readonly deviceIndex: number;
    /** Whether it is on a place of the extension type; absent when the cloud does not report it. */
    readonly isExtension?: boolean;
  };
  /** IPv4 addresses. */
  readonly ips: readonly EniIp[];
  /** IPv6 addresses in their shortest form; absent: none. */
  readonly ipv6s?: readonly EniIp[];
  /** In order of precedence. */
  readonly securityGroupIds: readonly string[];
  readonly tags: Tags;
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
};

/** Selects the ENIs of a sweep. Each field narrows the selection; sweeps for the same query are shared. */
export type EniQuery = {
  readonly vpcId?: string;
  readonly instanceId?: string;
  readonly subnetId?: string;
  /** ENIs that carry this tag with this value. */
  readonly tag?: { readonly key: string; readonly value: string };
  readonly name?: string;
};

/** The result of a sweep. */
export type EniSweep = {
  readonly enis: readonly Eni[];
  /**
   * False when the number of ENIs changed between pages, each time the sweep was tried: one that is not listed may
   * exist all the same. Never take absence for deletion then.
   */
  readonly isConsistent: boolean;
};

/** A new ENI. */
export type EniSpec = {
  readonly vpcId: string;
  readonly subnetId: string;
  /** At most 60 characters; deterministic, so that an intent can be found again. */
  readonly name: string;
  readonly description?: string;
  readonly securityGroupIds?: readonly string[];
  readonly tags?: Tags;
  /** Number of secondary addresses to create with the ENI; at most 10. */
  readonly ipCount?: number;
  /** At most 64 ASCII characters: the same token never makes a second ENI. */
  readonly clientToken?: string;
};

/** The goal of a task; the description of the object decides whether it is reached. */
export type EniGoal =
  /** `ips`: the secondary addresses that the answer named. */
  | { readonly kind: 'created'; readonly eniId: string; readonly ips?: readonly string[] }
  | { readonly kind: 'attached'; readonly eniId: string; readonly instanceId: string }
  | { readonly kind: 'detached'; readonly eniId: string }
  | { readonly kind: 'deleted'; readonly eniId: string }
  | { readonly kind: 'ips-assigned'; readonly eniId: string; readonly ips: readonly string[] }
  | { readonly kind: 'ips-unassigned'; readonly eniId: string; readonly ips: readonly string[] };

/** The goal of an EIP task. */
export type EipGoal = {
  readonly kind: 'eip-unbound' | 'eip-bound' | 'eip-released';
  readonly eipIds: readonly string[];
};

/** Work that the cloud accepted and does later. Plain data: it may be stored and checked again after a restart. */
export type CloudTask = {
  /** The RequestId of the call for tasks of the VPC; a number for tasks of EIPs. */
  readonly taskId: string;
  readonly action: string;
  readonly goal: EniGoal | EipGoal;
};

/**
 * How a task ended. `isUnseen`: the cloud calls it done, and no description shows its goal: descriptions lag, or the task is
 * an earlier one, of a call that was answered a second time, and its effect was undone meanwhile. `lost`: the goal is not
 * reached and the cloud knows no such task.
 */
export type TaskOutcome =
  | { readonly kind: 'done'; readonly isUnseen?: true }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'lost' }
  | { readonly kind: 'pending' };

/** The result of a change that took several calls: what was accepted, and the error that ended it. */
export type IpChange = {
  readonly ips: readonly string[];
  readonly tasks: readonly CloudTask[];
  readonly failure?: CloudError;
};

/** A subnet. */
export type Subnet = {
  readonly subnetId: string;
  readonly vpcId: string;
  readonly zone: string;
  readonly cidr: string;
  readonly cidrV6?: string;
  readonly freeIps: number;
  readonly totalIps: number;
};

/** The resource that uses an address. */
export type IpUser = {
  readonly ip: string;
  readonly subnetId: string;
  /** The cloud's name for its type: CVM, ENI, CLB and so on. */
  readonly resourceType: string;
  readonly resourceId: string;
};

/** An elastic public address. */
export type Eip = {
  readonly eipId: string;
  readonly name: string;
  readonly publicIp: string;
  /** CREATING, BINDING, BIND, UNBINDING, UNBIND, OFFLINING, BIND_ENI. */
  readonly status: string;
  readonly instanceId?: string;
  readonly eniId?: string;
  readonly privateIp?: string;
  readonly tags: Tags;
};

/** New EIPs. */
export type EipSpec = {
  readonly count: number;
  readonly name?: string;
  readonly isp?: 'BGP' | 'CMCC' | 'CTCC' | 'CUCC';
  readonly chargeType?:
    | 'TRAFFIC_POSTPAID_BY_HOUR'
    | 'BANDWIDTH_POSTPAID_BY_HOUR'
    | 'BANDWIDTH_PACKAGE'
    | 'BANDWIDTH_PREPAID_BY_MONTH';
  readonly bandwidthMbps?: number;
  readonly bandwidthPackageId?: string;
  readonly tags?: Tags;
  readonly clientToken?: string;
};

/** Selects the EIPs to describe. */
type EipQuery =
  | { readonly eipIds: readonly string[] }
  | { readonly eniId: string }
  | { readonly name: string }
  | { readonly tag: { readonly key: string; readonly value: string } };

/** Instances: read only. */
export type InstancePort = {
  /**
   * Describes instances; one that does not exist is absent from the answer. Calls that wait together share a request.
   */
  describe(instanceIds: readonly string[], context: CallContext): Promise<readonly Instance[]>;
  /**
   * Describes at most a hundred instances in a request that no other caller shares, so that what is in its answer shows
   * how far to trust what is not. @throws CloudError also when the answer is incomplete
   */
  describeAlone(instanceIds: readonly string[], context: CallContext): Promise<readonly Instance[]>;
  /**
   * Finds instances of a VPC by addresses of their primary ENIs; an unused address is absent. Calls that wait together
   * share requests of five addresses.
   */
  findByPrivateIps(vpcId: string, ips: readonly string[], context: CallContext): Promise<readonly Instance[]>;
  /** Returns the zones of the region. */
  zones(context: CallContext): Promise<readonly Zone[]>;
  /**
   * Returns how many ENIs and addresses an instance may have. The API is called once per instance type; the built-in
   * table is used when it fails.
   */
  eniLimits(instance: Instance, context: CallContext): Promise<EniLimits>;
};

/** ENIs. A change is accepted, not done, when the promise resolves: settle the task. */
export type EniPort = {
  /** Reads all pages once, shared by all callers that wait for the same query; the sweep begins after the call. */
  sweep(query: EniQuery, context: CallContext): Promise<EniSweep>;
  /** Describes ENIs by id; one that does not exist is absent. Calls that wait together share requests of 100 ids. */
  describe(eniIds: readonly string[], context: CallContext): Promise<readonly Eni[]>;
  /** Creates an ENI. @throws CloudError `quota` with scope `subnet` or `vpc-enis` */
  create(spec: EniSpec, context: CallContext): Promise<{ readonly eni: Eni; readonly task: CloudTask }>;
  /**
   * Attaches an ENI, to a standard place of the instance or to one of the extension type: each type has a quota of its
   * own. @throws CloudError `quota` with scope `instance-enis`
   */
  attach(
    eniId: string,
    instanceId: string,
    context: CallContext,
    options?: { readonly clientToken?: string | undefined; readonly isExtension?: boolean },
  ): Promise<CloudTask>;
  detach(eniId: string, instanceId: string, context: CallContext, clientToken?: string): Promise<CloudTask>;
  /** Deletes an ENI that is bound to nothing, with its addresses. @throws CloudError `gone` when it does not exist */
  delete(eniId: string, context: CallContext): Promise<CloudTask>;
};

/** Secondary addresses. */
export type IpPort = {
  /**
   * Assigns `count` addresses, ten a call; the token is numbered per call. A failure after the first call is returned,
   * not thrown.
   */
  assign(eniId: string, count: number, context: CallContext, clientToken?: string): Promise<IpChange>;
  /** Assigns the given addresses. */
  assignExact(eniId: string, ips: readonly string[], context: CallContext, clientToken?: string): Promise<IpChange>;
  /** Unassigns addresses, ten a call; the cloud unbinds their EIPs. */
  unassign(eniId: string, ips: readonly string[], context: CallContext): Promise<IpChange>;
  /** Assigns `count` IPv6 addresses, ten a call, of a subnet that has an IPv6 block. */
  assignIpv6(eniId: string, count: number, context: CallContext, clientToken?: string): Promise<IpChange>;
  /** Unassigns IPv6 addresses, ten a call. */
  unassignIpv6(eniId: string, ips: readonly string[], context: CallContext): Promise<IpChange>;
  /** Moves an address to another ENI of the same subnet. */
  migrate(ip: string, fromEniId: string, toEniId: string, context: CallContext): Promise<CloudTask>;
};

/** Subnets: read only. */
export type SubnetPort = {
  describe(subnetIds: readonly string[], context: CallContext): Promise<readonly Subnet[]>;
  sweep(vpcId: string, context: CallContext): Promise<readonly Subnet[]>;
  /** Returns the users of addresses of a VPC, a hundred at most; an unused address is absent. */
  usersOf(vpcId: string, ips: readonly string[], context: CallContext): Promise<readonly IpUser[]>;
};

/** A rule of a security group for what comes in from IPv4. The first that fits decides; what none fits is dropped. */
export type IngressRule = {
  readonly isAccepted: boolean;
  /** Network or address; undefined: a group or template, whose addresses are not read. */
  readonly cidr?: string;
  /** TCP, UDP, ICMP, ALL; undefined: a template, which is not read. */
  readonly protocol?: string;
  /** Ranges, first and last; undefined: all ports. */
  readonly ports?: readonly (readonly [number, number])[];
};

/** Security groups of ENIs. Done when the promise resolves. */
export type SecurityGroupPort = {
  /** Returns the rules of a group for what comes in, in their order. @throws CloudError `gone` when there is no such group */
  ingress(securityGroupId: string, context: CallContext): Promise<readonly IngressRule[]>;
  /** Replaces the groups of an ENI; order is precedence. */
  replace(eniId: string, securityGroupIds: readonly string[], context: CallContext): Promise<void>;
  associate(eniIds: readonly string[], securityGroupIds: readonly string[], context: CallContext): Promise<void>;
  disassociate(eniIds: readonly string[], securityGroupIds: readonly string[], context: CallContext): Promise<void>;
};

/** Elastic public addresses. */
export type EipPort = {
  /** Allocates EIPs. @throws CloudError `quota` with scope `eips` */
  allocate(
    spec: EipSpec,
    context: CallContext,
  ): Promise<{ readonly eipIds: readonly string[]; readonly task: CloudTask }>;
  associate(eipId: string, eniId: string, privateIp: string, context: CallContext): Promise<CloudTask>;
  disassociate(eipId: string, context: CallContext): Promise<CloudTask>;
  /** Releases an unbound EIP for good. */
  release(eipId: string, context: CallContext): Promise<CloudTask>;
  describe(query: EipQuery, context: CallContext): Promise<readonly Eip[]>;
};

/** Tasks that the cloud accepted. */
export type TaskPort = {
  /**
   * Waits until the goal is reached or can no longer be; `pending` when the time of the context ran out first. What is there
   * at the first look may have been so before the task: then the task is asked for, unless the goal `isNew`.
   */
  settle(task: CloudTask, context: CallContext & { readonly isNew?: boolean }): Promise<TaskOutcome>;
};

/** A route: packets to the network go to the instance with this address. */
export type VpcRoute = {
  /** Names the route in its place; where the API has no ids it is made of network and address. */
  readonly routeId: string;
  /** IPv4 network outside of the VPC's own: `172.16.4.0/24`. */
  readonly cidr: string;
  /**
   * Address of an instance. The cloud keeps the route when that instance is gone. Of a route that leads to something else
   * than an instance it is the id of that.
   */
  readonly gatewayIp: string;
  /** Free text of the creator; empty where the cloud keeps none, and for routes of the cloud itself. */
  readonly description: string;
  /** The cloud made it: it cannot be changed, and does not count for the quota. */
  readonly isSystem?: true;
  /** It is there, and the cloud does not obey it. */
  readonly isDisabled?: true;
};

/** A new route. */
export type VpcRouteSpec = Pick<VpcRoute, 'cidr' | 'gatewayIp' | 'description'>;

/** A route, and the address that it is to lead to. */
type VpcRouteMove = { readonly route: VpcRoute; readonly gatewayIp: string };

/** All routes of a place. */
type RouteSweep = {
  readonly routes: readonly VpcRoute[];
  /** False when the number of routes changed between pages, each time: one that is not listed may exist all the same. */
  readonly isConsistent: boolean;
};

/**
 * Where routes are kept. `global`: a VPC has them, by its id. `table`: a route table of a VPC has them, by its id, for the
 * subnets that use it. `cluster`: a route table of the cluster service has them, by its name, for the whole VPC.
 */
export type RouteKind = 'global' | 'table' | 'cluster';

/**
 * Routes of one kind. A change is done when the promise resolves, for all routes of the call or for none. The API has no
 * ClientToken.
 */
export type RoutePort = {
  /** Most routes of one call. */
  readonly maxPerCall: number;
  /** Reads how many routes of users each place may have; undefined: the cloud does not say. Absent: the API cannot. */
  readonly quota?: (context: CallContext) => Promise<number | undefined>;
  /** Reads all routes of a place. @throws CloudError `gone` when there is no such route table */
  list(place: string, context: CallContext): Promise<RouteSweep>;
  /** Reads the routes of all places of a VPC, by place. Absent: the API cannot. */
  readonly listAll?: (vpcId: string, context: CallContext) => Promise<ReadonlyMap<string, readonly VpcRoute[]>>;
  /**
   * Creates routes; the result is in their order.
   * @throws CloudError `quota` with scope `vpc-routes`; `resolve` when one of the very routes may exist
   */
  create(place: string, specs: readonly VpcRouteSpec[], context: CallContext): Promise<readonly VpcRoute[]>;
  /** Deletes routes. @throws CloudError `gone` when one of them does not exist */
  delete(place: string, routes: readonly VpcRoute[], context: CallContext): Promise<void>;
  /**
   * Leads the networks of routes to other addresses in one step; the result is in their order. Absent: the API cannot, and
   * a route is moved by deleting it and creating another.
   * @throws CloudError `gone` when one of them does not exist
   */
  readonly replace?: (
    place: string,
    moves: readonly VpcRouteMove[],
    context: CallContext,
  ) => Promise<readonly VpcRoute[]>;
};

/** The port to the cloud. Every method throws CloudError, and nothing else but the signal's reason. */
export type Cloud = {
  readonly instances: InstancePort;
  readonly enis: EniPort;
  readonly ips: IpPort;
  readonly subnets: SubnetPort;
  readonly securityGroups: SecurityGroupPort;
  readonly eips: EipPort;
  readonly tasks: TaskPort;
  /** Routes to networks of Pods, by where they are kept. */
  readonly routes: Readonly<Record<RouteKind, RoutePort>>;
};
