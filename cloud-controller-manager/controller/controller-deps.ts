import type { CertificatePort } from '../../cloud/certificates.ts';
import type { Cloud } from '../../cloud/cloud.ts';
import type { ListenerPort } from '../../cloud/listeners.ts';
import type { LoadBalancerPort } from '../../cloud/load-balancers.ts';
import type { RewritePort } from '../../cloud/rewrites.ts';
import type { RulePort } from '../../cloud/rules.ts';
import type { GroupPort } from '../../cloud/security-groups.ts';
import type { TargetPort } from '../../cloud/targets.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { ReleaseBrake } from '../../kube/release-brake.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CcmConfig } from '../config/options.ts';
import type { CcmEvents } from '../events/event-reasons.ts';
import type { CcmMetrics } from '../observability/metrics.ts';
import type { CcmNode } from './ccm-node.ts';
import type { NodeInstances } from './node-instances.ts';

/** The cloud, as the controllers use it. */
export type CcmCloud = Cloud & {
  readonly loadBalancers: LoadBalancerPort;
  readonly listeners: ListenerPort;
  readonly targets: TargetPort;
  readonly groups: GroupPort;
  readonly rules: RulePort;
  readonly rewrites: RewritePort;
  readonly certificates: CertificatePort;
};

/** What a controller works with. Every member outlives the term in which the controller runs. */
export type ControllerDeps = {
  readonly config: CcmConfig;
  readonly kube: KubeClient;
  readonly cloud: CcmCloud;
  /** All Nodes; has its first list when the controller starts. */
  readonly nodes: Informer<CcmNode>;
  /** The instances of the Nodes. */
  readonly instances: NodeInstances;
  readonly events: CcmEvents;
  /** Holds many deletions at once; counts those of earlier leaders too. */
  readonly brake: ReleaseBrake;
  readonly metrics: CcmMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
};

/** Reports whether a controller waits for another program that does the same. One that reports nothing never waits. */
export type ReportWaiting = (isWaiting: boolean) => void;

/**
 * Runs a controller for one term: ends when `signal` aborts, and not before. A fault of the cloud or of the API server is
 * reported and tried again, never thrown.
 */
export type RunController = (deps: ControllerDeps, signal: AbortSignal, reportWaiting: ReportWaiting) => Promise<void>;
