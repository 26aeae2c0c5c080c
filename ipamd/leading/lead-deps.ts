import type { Cloud } from '../../cloud/cloud.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { KeptBook } from '../direct/kept-book.ts';
import type { Ids } from '../nec/decision.ts';
import type { BreakerBook } from '../node/breaker-book.ts';
import type { CloudEyes } from '../node/cloud-eyes.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import type { NodeMemoryBook } from '../node/node-memory.ts';
import type { openInstanceBook } from '../nodes/instance-book.ts';
import type { MachineEntry } from '../nodes/machine-entry.ts';
import type { KnownNodeFacts } from '../nodes/node-facts.ts';
import type { IpamdMetrics } from '../observability/metrics.ts';
import type { InformerDeps, Informers, RecordInformers } from '../open-informers.ts';
import type { ClaimBook } from '../static/claim-book.ts';
import type { TakenBook } from '../static/taken-book.ts';
import type { WaitBook } from '../static/wait-book.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { Queues } from './queues.ts';

/** Dependencies of leading: of the process, and the same in each term. */
export type LeadDeps = {
  readonly config: IpamdConfig;
  readonly runtime: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly random: () => number;
    readonly ids: Ids;
    readonly kube: KubeClient;
    readonly cloud: Cloud;
    readonly metrics: IpamdMetrics;
  };
  readonly informers: Informers;
  readonly informerDeps: InformerDeps;
  /** Undefined if the cluster has no Machines. */
  readonly machines: () => Informer<MachineEntry> | undefined;
  readonly events: NodeEvents;
  /** Used by all terms. */
  readonly breakers: BreakerBook;
  /** Used by all terms. */
  readonly eyes: CloudEyes;
  /** Called with the state of a term, for metrics; with undefined when the term is over. */
  readonly onTerm: (view: TermView | undefined) => void;
};

/** The observable state of a term. */
export type TermView = {
  readonly epoch: number;
  readonly queues: Queues;
  readonly records: RecordInformers | undefined;
};

/** All components of one term of leadership; state that a later term must not have is made anew. */
export type TermParts = {
  readonly queues: Queues;
  readonly memory: NodeMemoryBook;
  readonly subnets: Subnets;
  readonly instances: ReturnType<typeof openInstanceBook>;
  readonly facts: KnownNodeFacts;
  readonly claims: ClaimParts;
  readonly kept: KeptBook;
  /** Returns the instances of the existing nodes. */
  readonly instanceIds: () => ReadonlySet<string>;
};

/** State of static addresses that belongs to one term. */
export type ClaimParts = { readonly book: ClaimBook; readonly taken: TakenBook; readonly waits: WaitBook };
