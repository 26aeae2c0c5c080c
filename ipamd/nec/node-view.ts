import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { IpamdEventReason } from '../event-reasons.ts';
import type { ClaimWish } from './claim-wish.ts';
import type { KeptEni } from './kept-eni.ts';

/** The instance that a node is, as far as decisions about its ENIs need it. */
export type NodeInstance = {
  readonly instanceId: string;
  readonly instanceType: string;
  /** As the cloud names it: `ap-guangzhou-3`. */
  readonly zone: string;
  readonly vpcId: string;
  /** Running or being started: may take ENIs. */
  readonly isRunning: boolean;
  /** ENIs besides the primary one that the instance type may have. */
  readonly secondaryEnis: number;
  /** Addresses of an ENI besides its primary one that the instance type may have. */
  readonly secondaryIpsPerEni: number;
};

/** A subnet that the node's new ENIs may be made in. */
export type SubnetChoice = {
  readonly subnetId: string;
  readonly cidr: string;
  /** As last described, less what was asked for since. */
  readonly freeIps: number;
  /** True while its breaker is open: it was found full a moment ago. */
  readonly isBlocked: boolean;
};

/** How far the node's ENIs are to be given back. */
export type Leaving =
  /** The node stays. */
  | 'no'
  /** Everything is drained: an ENI goes when nothing on it is in use. */
  | 'drain'
  /** Nothing can be in use any more (the instance is stopped or gone, or the node is long gone with its Pods): everything goes. */
  | 'force';

/** Something that is wrong with a node or its input, for people: reason of a condition and of an event, and its text. */
export type NodeProblem = { readonly reason: IpamdEventReason; readonly message: string };

/** Why a key of {@link NodeView.blocked} is blocked, and for how long. */
export type Refusal = {
  /** The cloud's own words. */
  readonly message: string;
  readonly afterMs: number;
};

/** Everything that a decision about one node depends on; frozen data, no clock and no randomness in it. */
export type NodeView = {
  readonly nodeName: string;
  /** Of the NodeENIConfig object. */
  readonly uid: string;
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  readonly leaving: Leaving;
  /** Undefined while the instance is not known or gone: nothing new is asked for then. */
  readonly instance: NodeInstance | undefined;
  /** Annotations and flags put together: the most shared ENIs and addresses on one, before the instance's own limits. */
  readonly maxRouteENI: number | undefined;
  readonly maxIPPerENI: number | undefined;
  /** Never less than this is kept bound: `desired-route-eni-pod-num` of the Node; 0 for none. */
  readonly floor: number;
  /** Used for a node whose agent has not written a demand yet. */
  readonly initialDemand: number;
  /** Of the node's zone, in the order of the configuration. */
  readonly subnets: readonly SubnetChoice[];
  /** The whole wanted list, in order; undefined leaves ENIs as they are. */
  readonly securityGroups: readonly string[] | undefined;
  /**
   * Keys of open breakers: `vpc-enis`, `instance-enis`, `eni-ips/<eniId>`, `subnet/<subnetId>` (of this node alone), and
   * `call/<action>` or `call/<action>/<eniId>` for what the cloud refused for another reason, `claim/<namespace>/<name>` for
   * what it refused of a claim, `claim/<namespace>/<name>/<ip>` of one address for it.
   */
  readonly blocked: ReadonlySet<string>;
  /**
   * Of the same keys those that the cloud refused more than once in a row, until a moment ago: they may be tried again, and
   * nobody should count on it. Default: none.
   */
  readonly doubtful?: ReadonlySet<string>;
  /**
   * ENIs and intents whose call has been under way for so long that others need not wait for it; and ENIs that have been
   * Attaching for so long, without a call, that they are given up.
   */
  readonly stuck: ReadonlySet<string>;
  /** By key of `blocked`, and `subnet/<subnetId>` of subnets that are blocked for all, where known. */
  readonly refusals?: ReadonlyMap<string, Refusal>;
  /**
   * Addresses that live Pods of the node have by the API server's word, whatever the object says. Offers of them are not
   * honoured: somebody else than the agent wrote them, or the Pod lingers. Default: none.
   */
  readonly inUse?: ReadonlySet<string>;
  /** Spare addresses that the node keeps: fewer than the demand less these means that Pods wait. Default: the spec's, or 5. */
  readonly warmTarget?: number;
  /** What the node has to do for addresses and exclusive ENIs that are kept; by key of the claim. Default: none. */
  readonly claims?: ReadonlyMap<string, ClaimWish>;
  /**
   * Subnets of the node's zone that claims of its Pods name, and that are none of `subnets`: for ENIs of those claims
   * alone. Default: none.
   */
  readonly claimSubnets?: readonly SubnetChoice[];
  /** Subnets that are only for nodes and Pods that name them (`--only-nominated-eni-subnets`). Default: none. */
  readonly reservedSubnets?: ReadonlySet<string>;
  /**
   * Claims (`namespace/name`) by the address that is theirs, wherever it is: one that comes to this node without having
   * been asked for by name gets the mark of its claim, and is none of the pool. Default: none.
   */
  readonly reservedIps?: ReadonlyMap<string, string>;
  /**
   * Addresses that the object of another node has Assigned, with the mark of their claim, and the ENI there: an entry of
   * ours that is Releasing and was handed over goes. Default: none.
   */
  readonly movedTo?: ReadonlyMap<string, string>;
  /** Claims that other nodes have a call under way for, as this process knows: nothing is begun for them. Default: none. */
  readonly claimCallsElsewhere?: ReadonlySet<string>;
  /** Most exclusive ENIs, kept ones included, before the instance's own limits. Default: 0, the node serves none. */
  readonly maxDirectENI?: number;
  /** Exclusive ENIs of a node whose agent has not written a demand for them yet. Default: 0. */
  readonly initialDirectDemand?: number;
  /** Exclusive ENIs that are kept for the Pods of one name, on this node, on others or on none; by id. Default: none. */
  readonly keptEnis?: ReadonlyMap<string, KeptEni>;
  /** Wrong input that the decision works around; becomes the condition `ConfigValid`. */
  readonly problems?: readonly NodeProblem[];
};
