import type { Cloud } from '../../cloud/cloud.ts';
import type { ReservedIpPort } from '../../cloud/reserved-ips.ts';
import type { FreshStore } from '../../kube/fresh-store.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { ReleaseBrake } from '../../kube/release-brake.ts';
import type { RouteCache } from '../../pod-routes/route-cache.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { MachineEntry } from '../cache/machine-entry.ts';
import type { RegisteredIps } from '../cache/registered-ips.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { DefinitionGuard } from '../crds/definition-guard.ts';
import type { Ids } from '../decide/decision.ts';
import type { StaticEniIndex } from '../direct/static-eni-index.ts';
import type { AddressLookup } from '../node-lifecycle/address-lookup.ts';
import type { openInstanceCache } from '../node-lifecycle/instance-cache.ts';
import type { KnownNodeFacts } from '../node-lifecycle/node-facts.ts';
import type { Renewals } from '../node-lifecycle/renewals.ts';
import type { IpamdMetrics } from '../observability/metrics.ts';
import type { SecondAllocator } from '../pod-cidrs/second-allocator.ts';
import type { AddressConflicts } from '../static/address-conflicts.ts';
import type { ClaimRequests } from '../static/claim-requests.ts';
import type { ClaimWaits } from '../static/claim-waits.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { CircuitBreakers } from '../supply/circuit-breakers.ts';
import type { CloudObserver } from '../supply/cloud-observer.ts';
import type { NodeEvents } from '../supply/node-deps.ts';
import type { NodeMemories } from '../supply/node-memory.ts';
import type { CiliumFollower } from './follow-cilium-nodes.ts';
import type { InformerDeps, Informers, RecordInformers } from './open-informers.ts';
import type { Queues } from './queues.ts';

/** Dependencies of leading: of the process, and the same in each term. */
export type LeaderDeps = {
  readonly config: IpamdConfig;
  readonly runtime: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly random: () => number;
    readonly ids: Ids;
    readonly kube: KubeClient;
    readonly cloud: Cloud & { readonly reservedIps: ReservedIpPort };
    readonly metrics: IpamdMetrics;
  };
  readonly informers: Informers;
  readonly informerDeps: InformerDeps;
  /** Undefined if the cluster has no Machines. */
  readonly machines: () => Informer<MachineEntry> | undefined;
  /** Of the process. */
  readonly definitions: Pick<DefinitionGuard, 'areSame' | 'isOwnDeletion' | 'isRebuilding'>;
  readonly events: NodeEvents;
  /** Of the process; undefined without --allocate-node-cidrs. */
  readonly secondAllocator: SecondAllocator | undefined;
  /** Used by all terms. */
  readonly breakers: CircuitBreakers;
  /** Used by all terms. */
  readonly releaseBrake: ReleaseBrake;
  /** Used by all terms. */
  readonly cloudObserver: CloudObserver;
  /** Called with the state of a term, for metrics; with undefined when the term is over. */
  readonly onTerm: (view: TermView | undefined) => void;
};

/** The observable state of a term. */
export type TermView = {
  readonly epoch: number;
  readonly queues: Queues;
  readonly records: RecordInformers | undefined;
  readonly ciliumNodes: Pick<CiliumFollower, 'informer'>;
};

/** All components of one term of leadership; state that a later term must not have is made again. */
export type TermComponents = {
  readonly queues: Queues;
  readonly memory: NodeMemories;
  /** With what was written in this term. */
  readonly freshNecs: FreshStore<NecEntry>;
  readonly subnets: Subnets;
  readonly instances: ReturnType<typeof openInstanceCache>;
  readonly facts: KnownNodeFacts;
  readonly lookup: AddressLookup;
  readonly renewals: Renewals;
  readonly claims: ClaimState;
  readonly staticEniIndex: StaticEniIndex;
  /** Addresses that load balancers may still have; undefined with --load-balancer-wait=0. */
  readonly registered: RegisteredIps | undefined;
  /** Routes of the VPC to networks of Pods; undefined without --gr-routes=ipamd. */
  readonly podRoutes: RouteCache | undefined;
  readonly ciliumNodes: CiliumFollower;
  /** Returns the instances of the existing nodes. */
  readonly instanceIds: () => ReadonlySet<string>;
};

/** State of static addresses that belongs to one term. */
export type ClaimState = {
  readonly requests: ClaimRequests;
  readonly conflicts: AddressConflicts;
  readonly waits: ClaimWaits;
};
