import type { Cloud } from '../../cloud/cloud.ts';
import type { Mutation } from '../../crd/intent.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { IpamdEventReason } from '../event-reasons.ts';
import type { Ids, IntentOutcome, Leader } from '../nec/decision.ts';
import type { KeptEni } from '../nec/kept-eni.ts';
import type { NodeProblem, NodeView } from '../nec/node-view.ts';
import type { BreakerBook } from './breaker-book.ts';
import type { CloudEyes } from './cloud-eyes.ts';
import type { NecEntry } from './nec-entry.ts';
import type { NodeMemoryBook } from './node-memory.ts';

/** What is known of a node beside its NodeENIConfig: from its Node, its instance, the configuration and the subnets. */
export type NodeFactParts = Pick<
  NodeView,
  | 'leaving'
  | 'instance'
  | 'maxRouteENI'
  | 'maxIPPerENI'
  | 'floor'
  | 'initialDemand'
  | 'subnets'
  | 'securityGroups'
  | 'inUse'
  | 'maxDirectENI'
  | 'initialDirectDemand'
  | 'keptEnis'
  | 'claims'
  | 'claimSubnets'
  | 'reservedSubnets'
  | 'reservedIps'
  | 'movedTo'
> & {
  /** Spare addresses that the node keeps; tells a call for Pods from one for the pool. Default: of the spec, or 5. */
  readonly warmTarget?: number;
  /** Wrong input that the decision works around: a condition, an event and a metric name each. */
  readonly problems?: readonly NodeProblem[];
};

/** What {@link NodeFacts.viewOf} answers. `unknown`: nothing can be decided yet; looked at again after `afterMs`. */
export type NodeFactsAnswer =
  | { readonly kind: 'known'; readonly parts: NodeFactParts }
  | {
      readonly kind: 'unknown';
      readonly problem: NodeProblem;
      readonly afterMs: number;
      /** What calls that end meanwhile bring has its mark all the same. */
      readonly reservedIps?: NodeView['reservedIps'];
    };

/** Knows nodes, instances, subnets and the configuration. Answers at once, from what it has. */
export type NodeFacts = {
  viewOf(name: string, entry: NecEntry): NodeFactsAnswer;
  /** Notes that so many addresses of a subnet are asked for now; negative when they were refused or given back. */
  subnetUsed(subnetId: string, count: number): void;
  /** Notes that the cloud found a subnet full. */
  subnetFull(subnetId: string): void;
};

/** The NodeENIConfigs, as a watch has them: may be behind, never ahead. */
export type NecStore = {
  get(name: string): NecEntry | undefined;
  /** How often they were all read anew; 0 for a store that never lists again. */
  readonly listings?: number;
};

/** What is told to people: the part of the event recorder that a node needs. */
export type NodeEvents = {
  record(event: {
    readonly involved: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
      readonly uid?: string;
    };
    readonly type: 'Normal' | 'Warning';
    readonly reason: IpamdEventReason;
    readonly message: string;
  }): void;
};

/** Hears what happens to nodes; how metrics come in. */
export type NodeObserver = {
  /** A call ended: `code` is the cloud's, for what was refused or stayed unclear. */
  onCall?(call: {
    readonly node: string;
    readonly action: Mutation;
    readonly outcome: IntentOutcome['kind'];
    readonly tookMs: number;
    readonly code?: string;
  }): void;
  /** A guarded write of a NodeENIConfig. */
  onWrite?(write: { readonly node: string; readonly result: 'written' | 'conflict' | 'failed' }): void;
  /** The cloud is asked what it holds for a node. */
  onDescribe?(describe: { readonly node: string; readonly why: string }): void;
  /** The cloud holds something else than the object says. */
  onDrift?(drift: { readonly node: string; readonly kinds: readonly string[] }): void;
  /** An object that others than ipamd and the agent had changed is as it should be again. */
  onMended?(mended: { readonly node: string; readonly kind: string }): void;
  /** All that is wrong with a node now; an empty list when nothing is. */
  onProblems?(node: string, problems: readonly NodeProblem[]): void;
};

/** The time during which this process leads; a part of `Term` of leader election. */
export type NodeTerm = {
  /** Monotonic milliseconds at which it began. */
  readonly startedMs: number;
  readonly leaseMs: number;
  /** Aborted before another may lead: nothing is called and nothing written from then on. */
  readonly signal: AbortSignal;
};

/** What the cloud said when it refused a call for a kept address. */
export type ClaimRefusal = {
  readonly node: string;
  readonly action: Mutation;
  /** Addresses that were asked for by name. */
  readonly ips: readonly string[];
  readonly code: string;
  readonly message: string;
};

/** What {@link reconcileNode} works with; one for each term of leadership, for `memory` is of one term. */
export type NodeDeps = {
  readonly cloud: Cloud;
  readonly kube: KubeClient;
  readonly necs: NecStore;
  readonly facts: NodeFacts;
  readonly leader: Leader & { readonly term: NodeTerm };
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
  readonly observe: NodeObserver;
  /** Of the process: outlives terms. */
  readonly breakers: BreakerBook;
  /** Of the process. */
  readonly eyes: CloudEyes;
  /** Of the term. */
  readonly memory: NodeMemoryBook;
  /** Hears that the cloud refused something of one kept address; `namespace/name` of its claim. Default: nobody. */
  readonly keptEni?: (eniId: string) => KeptEni | undefined;
  readonly claimRefused?: (key: string, refusal: ClaimRefusal) => void;
  /** Hears why claims whose Pods are on a node wait for their address, by key; each time that the node is looked at. Default: nobody. */
  readonly claimsWait?: (node: string, waits: ReadonlyMap<string, string>) => void;
  /** Puts a node in line again: a call that outlasted its turn has ended. */
  readonly wake: (name: string) => void;
};
