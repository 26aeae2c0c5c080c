import type { Cloud } from '../../cloud/cloud.ts';
import type { ReservedIpPort } from '../../cloud/reserved-ips.ts';
import type { ControllerObserver } from '../../kube/controller.ts';
import type { Leadership } from '../../kube/election/term.ts';
import type { EventSink } from '../../kube/events/event-object.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { ReleaseBrake } from '../../kube/release-brake.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ConfigMapEntry } from '../cache/config-map-entry.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import type { VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { DefinitionGuard } from '../crds/definition-guard.ts';
import type { Ids, Leader } from '../decide/decision.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';
import type { IpamdMetrics } from '../observability/metrics.ts';
import type { CircuitBreakers } from './circuit-breakers.ts';
import type { CloudObserver } from './cloud-observer.ts';

/** What the controllers of one term of leadership work with; each names the members that it uses. */
export type Term = {
  readonly config: IpamdConfig;
  readonly kube: KubeClient;
  readonly cloud: Cloud & { readonly reservedIps: ReservedIpPort };
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly ids: Ids;
  readonly events: NodeEvents;
  readonly metrics: IpamdMetrics;
  /** Receives every reconcile, for metrics. */
  readonly observer: ControllerObserver;
  /** Whether objects are deleted, or were lost a short time ago, with the definition of their kind. */
  readonly definitions: Pick<DefinitionGuard, 'areSame' | 'isOwnDeletion' | 'wereLostLately'>;
  /** Of the process: used by all its terms. */
  readonly breakers: CircuitBreakers;
  /** Of the process. */
  readonly brake: ReleaseBrake;
  /** Of the process. */
  readonly cloudObserver: CloudObserver;
  readonly leader: Leader & { readonly term: NodeTerm };
  readonly necs: Informer<NecEntry>;
  readonly nodes: Informer<NodeEntry>;
  readonly pods: Informer<PodFacts>;
  /** Of exclusive ENIs; static ones may be on no node. */
  readonly vpcEnis: Informer<VpcEniEntry>;
  /** Of the one ConfigMap with the subnets. */
  readonly configMaps: Informer<ConfigMapEntry>;
  /** Enqueues a node for its supply. */
  readonly enqueueNode: (name: string) => void;
};

/** Records events with the reasons of ipamd alone. */
export type NodeEvents = EventSink<IpamdEventReason>;

/**
 * The time during which this process leads. Its signal is aborted before another replica may lead: from then on nothing is
 * called or written.
 */
type NodeTerm = Pick<Leadership, 'startedMs' | 'leaseMs' | 'signal'>;
