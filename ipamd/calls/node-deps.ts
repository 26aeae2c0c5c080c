import type { Cloud } from '../../cloud/cloud.ts';
import type { Mutation } from '../../crd/intent.ts';
import type { FreshStore } from '../../kube/fresh-store.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { ClaimWait } from '../decide/decision.ts';
import type { NodeFactValues, NodeProblem } from '../decide/node-view.ts';
import type { StaticEni } from '../decide/static-eni.ts';
import type { NodeMemories } from './node-memory.ts';
import type { Term } from './term.ts';

/** Answer of {@link NodeFactsSource.viewOf}. `unknown`: nothing can be decided yet; checked again after `afterMs`. */
export type NodeFactsAnswer =
  | { readonly kind: 'known'; readonly values: NodeFactValues }
  | {
      readonly kind: 'unknown';
      readonly problem: NodeProblem;
      readonly afterMs: number;
      /** Addresses of calls that end meanwhile get their claim mark all the same. */
      readonly reservedIps?: NodeFactValues['reservedIps'];
    };

/** Source of nodes, instances, subnets and the configuration. Answers at once, from its caches. */
export type NodeFactsSource = {
  viewOf(name: string, entry: NecEntry): NodeFactsAnswer;
  /** Counts addresses that are requested of a subnet now; negative when they were refused or released. */
  subnetUsed(subnetId: string, count: number): void;
  /** Notes that the cloud found a subnet full. */
  subnetFull(subnetId: string): void;
};

/** The NodeENIConfigs as a watch and the own writes have them. */
type NecStore = Pick<FreshStore<NecEntry>, 'get' | 'note' | 'forget'>;

/** The answer of the cloud that refused a call for a static address. */
export type ClaimRefusal = {
  readonly node: string;
  readonly action: Mutation;
  /** Addresses that were requested by name. */
  readonly ips: readonly string[];
  readonly code: string;
  readonly message: string;
};

/** Dependencies of {@link reconcileNode}; one for each term of leadership, because `memory` belongs to one term. */
export type NodeDeps = Pick<
  Term,
  'kube' | 'leader' | 'ids' | 'clock' | 'log' | 'events' | 'metrics' | 'breakers' | 'cloudObserver' | 'enqueueNode'
> & {
  readonly cloud: Cloud;
  readonly necs: NecStore;
  /** How often the NodeENIConfigs were listed. */
  readonly listings: () => number;
  readonly facts: NodeFactsSource;
  readonly memory: NodeMemories;
  /** Finds the static ENI of an id; undefined for other ENIs. Default: none is static. */
  readonly staticEnis?: { find(eniId: string): StaticEni | undefined };
  /**
   * Called when the cloud refused a call for one static address; `key` is `namespace/name` of its claim. Default: not
   * reported.
   */
  readonly claimRefused?: (key: string, refusal: ClaimRefusal) => void;
  /**
   * Called on each pass of a node with the reasons why claims whose Pods are on the node wait for their address, by
   * key. Default: not reported.
   */
  readonly claimsWait?: (node: string, waits: ReadonlyMap<string, ClaimWait>) => void;
  /**
   * Returns the supply epoch of a node's object that was lost, or let go, a short time ago; 0 when it is unknown. An object
   * that never was described replaces it, and is filled from the cloud. Default: none was.
   */
  readonly lostEpochOf?: (name: string) => number | undefined;
  /**
   * Called before an object of a node that stays is let go, with the supply epoch that its next object has to exceed.
   * Returns false when the node does not stay by now. Default: it stays.
   */
  readonly beginRenewal?: (name: string, epoch: number, signal: AbortSignal) => Promise<boolean>;
  /** Nodes that exist: their problems are reported on them. Default: none exists. */
  readonly nodes?: { get(name: string): { readonly uid: string } | undefined };
  /**
   * Resolves when a node is enqueued while its reconcile runs, at once when it was already, or when `signal` aborts.
   * Absent: never.
   */
  readonly queuedAgain?: (name: string, signal: AbortSignal) => Promise<void>;
};
