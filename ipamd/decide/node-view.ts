import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';
import type { ClaimRequest } from './claim-request.ts';
import type { StaticEni } from './static-eni.ts';

/** The instance of a node, with the fields that decisions about its ENIs use. */
export type NodeInstance = {
  readonly instanceId: string;
  readonly instanceType: string;
  /** As the cloud names it: `ap-guangzhou-3`. */
  readonly zone: string;
  readonly vpcId: string;
  /** The instance is running or starting: it may get ENIs. */
  readonly isRunning: boolean;
  /** Limit of ENIs for the instance type, without the primary ENI. */
  readonly secondaryEnis: number;
  /** Places of the extension type, apart from those; absent: none. */
  readonly extensionEnis?: number;
  /** Limit of addresses on one ENI for the instance type, without the ENI's primary address. */
  readonly secondaryIpsPerEni: number;
};

/** A subnet in which new ENIs of the node may be created. */
export type SubnetChoice = {
  readonly subnetId: string;
  readonly cidr: string;
  /** Free addresses as last described, minus those requested since. */
  readonly freeIps: number;
  /** True while the breaker of the subnet is open: the cloud found it full a moment ago. */
  readonly isBlocked: boolean;
};

/** Key of the breaker of an instance's places of the extension type; `instance-enis` is that of its standard ones. */
export const EXTENSION_ENIS = 'instance-enis/extension';

/** How far the node's ENIs are torn down. */
export type Leaving =
  /** The node stays. */
  | 'no'
  /** Everything is drained: an ENI is removed once nothing on it is in use. */
  | 'drain'
  /**
   * Everything is removed without an offer of the agent. Nothing can be in use any more: the instance is stopped or
   * deleted, or the Node and its Pods have been missing for long.
   */
  | 'force';

/** A fault of a node or of its input, reported to people: reason of a condition and of an event, and the text. */
export type NodeProblem = {
  readonly reason: IpamdEventReason;
  readonly message: string;
  /** Of the call that the cloud refused, if it refused one. Another one alone is no other problem. */
  readonly requestId?: string;
};

/** Why a key of {@link NodeView.blocked} is blocked, and for how long. */
export type Refusal = {
  /** The error text of the cloud. */
  readonly message: string;
  /** Of the call that was refused last. */
  readonly requestId?: string;
  readonly afterMs: number;
};

/** What is known of a node beside its NodeENIConfig: from its Node, its instance, the configuration and the subnets. */
export type NodeFactValues = {
  readonly leaving: Leaving;
  /** Undefined while the instance is unknown or deleted: then nothing new is requested. */
  readonly instance: NodeInstance | undefined;
  /**
   * Limits from annotations and flags: shared ENIs, and addresses on each. The limits of the instance apply as well.
   */
  readonly maxRouteENI: number | undefined;
  readonly maxIPPerENI: number | undefined;
  /** Minimum of addresses that stay on the node's ENIs: `desired-route-eni-pod-num` of the Node; 0 for none. */
  readonly floor: number;
  /** Demand of a node whose agent has not written one yet. */
  readonly initialDemand: number;
  /** Subnets in the node's zone, in the order of the configuration. */
  readonly subnets: readonly SubnetChoice[];
  /** The complete requested list, in order; undefined leaves the ENIs unchanged. */
  readonly securityGroups: readonly string[] | undefined;
  /**
   * Addresses of live Pods according to the API server, whatever the object contains. Offers of them are not accepted:
   * such an offer was written by another client than the agent, or the Pod still terminates. Default: none.
   */
  readonly inUse?: ReadonlySet<string>;
  /**
   * Addresses that load balancers may still have as targets. None of them is given back, nor goes to another Pod; it
   * may move with the Pod that it is kept for. Default: none.
   */
  readonly registered?: ReadonlySet<string>;
  /**
   * Addresses that the CiliumNode of the node has in its pool or in use: no offer of one is accepted, whoever wrote it.
   * `unknown`: none of any address is. Default: Cilium gives no addresses there.
   */
  readonly ciliumIps?: ReadonlySet<string> | 'unknown';
  /** The live Pods by their addresses, as `namespace/name`. Default: unknown. */
  readonly podNames?: ReadonlyMap<string, string>;
  /**
   * Spare addresses of the node. With fewer than the demand minus this number, Pods wait. Default: the spec's, or 5.
   */
  readonly warmTarget?: number;
  /** Requests of claims for addresses and exclusive ENIs on this node; by key of the claim. Default: none. */
  readonly claims?: ReadonlyMap<string, ClaimRequest>;
  /**
   * Subnets of the node's zone that claims of its Pods name and that are not in `subnets`. They are used only for ENIs
   * of those claims. Default: none.
   */
  readonly claimSubnets?: readonly SubnetChoice[];
  /** Subnets that only nodes and Pods that name them may use (`--only-nominated-eni-subnets`). Default: none. */
  readonly reservedSubnets?: ReadonlySet<string>;
  /**
   * Claims (`namespace/name`) by their static address, wherever the address is. If such an address comes to this node
   * without having been requested by name, it gets the mark of its claim and does not belong to the pool. Default:
   * none.
   */
  readonly reservedIps?: ReadonlyMap<string, string>;
  /**
   * Addresses that the object of another node has Assigned with a claim mark, and the ENI there. An entry of this node
   * for such an address is Releasing and was handed over; it is removed. Default: none.
   */
  readonly movedTo?: ReadonlyMap<string, string>;
  /**
   * Limit of exclusive ENIs, static ones included; the limits of the instance apply as well. Default: 0, the node
   * serves none.
   */
  readonly maxDirectENI?: number;
  /** Demand for exclusive ENIs of a node whose agent has not written one yet. Default: 0. */
  readonly initialExclusiveDemand?: number;
  /** Static exclusive ENIs, on this node, on other nodes or on none; by id. Default: none. */
  readonly staticEnis?: ReadonlyMap<string, StaticEni>;
  /** Invalid input that the decision works around; becomes the condition `ConfigValid`. */
  readonly problems?: readonly NodeProblem[];
  /**
   * The deletion of the NodeENIConfig was requested, and nothing of the node is given back: the object alone is made again.
   * Default: false.
   */
  readonly isRenewed?: boolean;
};

/** Everything that a decision about one node depends on. Frozen data without clock and randomness. */
export type NodeView = NodeFactValues & {
  readonly nodeName: string;
  /** Of the NodeENIConfig object. */
  readonly uid: string;
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  /**
   * Keys of open breakers: `vpc-enis`, `instance-enis`, `instance-enis/extension`, `eni-ips/<eniId>`, `subnet/<subnetId>` (of this node alone).
   * `call/<action>` or `call/<action>/<eniId>`: the cloud refused the call for another reason.
   * `claim/<namespace>/<name>`: it refused a call for a claim. `claim/<namespace>/<name>/<ip>`: it refused this address
   * for the claim.
   */
  readonly blocked: ReadonlySet<string>;
  /**
   * Those of the same keys that the cloud refused more than once in a row until a moment ago. They may be tried again,
   * but no capacity may be counted on them. Default: none.
   */
  readonly doubtful?: ReadonlySet<string>;
  /** Keys whose last call was refused, open or not. Default: none. */
  readonly refusedLast?: ReadonlySet<string>;
  /**
   * ENIs and intents whose call has been in flight for so long that other calls need not wait for it. Also ENIs that
   * have been Attaching for so long without a call that they are given up.
   */
  readonly stuck: ReadonlySet<string>;
  /** By key of `blocked`, and by `subnet/<subnetId>` of subnets that are blocked for all nodes, where known. */
  readonly refusals?: ReadonlyMap<string, Refusal>;
  /**
   * Claims for which other nodes have a call in flight, as this process knows. No call is started for them. Default:
   * none.
   */
  readonly claimCallsElsewhere?: ReadonlySet<string>;
};
