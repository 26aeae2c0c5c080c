import type { Registry } from 'prom-client';
import type { CallObserver } from '../../cloud/tencent/caller.ts';
import type { ControllerObserver } from '../../kube/controller.ts';
import type { InformerObserver } from '../../kube/informer.ts';
import type { KubeObserver } from '../../kube/kube-observer.ts';
import {
  createCloudObserver,
  createControllerObserver,
  createInformerObserver,
  createKubeObserver,
  type KubeContact,
  type Pacing,
  showPacing,
} from '../../observability/call-metrics.ts';
import { CloudRights } from '../../observability/cloud-rights.ts';
import { createMetricFactory, type MetricFactory } from '../../observability/metric-factory.ts';
import { ProblemRegistry } from '../../observability/problem-registry.ts';
import { showProcess } from '../../observability/process-metrics.ts';
import { RateMeter } from '../../observability/rate-meter.ts';
import { createRoutesObserver } from '../../observability/route-metrics.ts';
import { type InformerSample, showInformers } from '../../observability/work-metrics.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ProcessUsage } from '../../runtime/process-usage.ts';
import type { ControllerName } from '../config/controllers-value.ts';
import { type CertificatesObserver, createCertificatesObserver } from './certificate-metrics.ts';
import { createIngressesObserver, type IngressesObserver } from './ingress-metrics.ts';
import { createLoadBalancersObserver, type LoadBalancersObserver } from './load-balancer-metrics.ts';

/**
 * State of a controller of this replica. `waiting`: another program does the same, and holds the lock of it; `off`: not
 * named by --controllers; `noRights`: its rights are missing.
 */
export type ControllerState = 'running' | 'waiting' | 'standby' | 'off' | 'noRights';

/** Sources of the state; read at each scrape. */
type CcmState = {
  readonly isLeading: () => boolean;
  readonly informers: () => Iterable<InformerSample>;
  readonly controllers: () => Iterable<readonly [ControllerName, ControllerState]>;
};

/** All metrics of the process. Create them before the clients, which use their observers. */
export type CcmMetrics = {
  readonly cloud: CallObserver;
  readonly kube: KubeObserver;
  readonly informer: InformerObserver;
  readonly controller: ControllerObserver;
  readonly problems: ProblemRegistry;
  /** Of the route controller. */
  readonly routes: ReturnType<typeof createRoutesObserver>;
  /** Of the service controller. */
  readonly loadBalancers: LoadBalancersObserver;
  /** Of certificates of Ingresses. */
  readonly certificates: CertificatesObserver;
  /** Of the ingress controller. */
  readonly ingresses: IngressesObserver;
  /** Refusals of the cloud that concern all callers. */
  readonly cloudRights: CloudRights;
  readonly contact: Readonly<KubeContact>;
  /** Notes that a Node was initialised, so many seconds after it was created. */
  readonly nodeInitialized: (ageS: number) => void;
  /** Sets the sources of the state from now on. */
  show(state: CcmState, pacing: Pacing | undefined): void;
  readonly registry: Registry;
};

/** As upstream has them: a second to 17 minutes. */
const DELAY_BUCKETS_S = [1, 4, 16, 64, 256, 1024];
const NO_STATE: CcmState = { isLeading: () => false, informers: () => [], controllers: () => [] };

/** Creates the metrics in a registry of their own. */
export function createCcmMetrics(
  clock: Clock,
  about: { readonly release: string; readonly usage?: () => ProcessUsage },
): CcmMetrics {
  const factory = createMetricFactory('tke_cloud_controller_manager_');
  const meter = new RateMeter();
  const problems = new ProblemRegistry();
  const contact: KubeContact = { lastOkMs: Number.NEGATIVE_INFINITY };
  let state = NO_STATE;
  let pacing: Pacing | undefined;
  showState(factory, problems, () => state);
  showInformers(factory, clock, () => state);
  showPacing(factory, clock, meter, () => pacing);
  showProcess(factory, about);
  const cloudRights = new CloudRights(problems, 'tke-cloud-controller-manager');
  const counted = createCloudObserver(factory, clock, meter);
  return {
    cloud: {
      ...counted,
      onAttempt: (attempt) => {
        counted.onAttempt(attempt);
        cloudRights.onAttempt(attempt);
      },
      onKeyFailure: (kind, text) => cloudRights.onKeyFailure(kind, text),
    },
    kube: createKubeObserver(factory, clock, contact),
    informer: createInformerObserver(factory),
    controller: createControllerObserver(factory),
    routes: countSyncs(factory),
    loadBalancers: createLoadBalancersObserver(factory),
    certificates: createCertificatesObserver(factory),
    ingresses: createIngressesObserver(factory),
    problems,
    cloudRights,
    contact,
    nodeInitialized: createDelayObserver(factory.registry),
    show: (newState, newPacing) => {
      state = newState;
      pacing = newPacing;
    },
    registry: factory.registry,
  };
}

/**
 * Makes upstream's two histograms of how long new Nodes wait. What has upstream's meaning has upstream's name, without our
 * prefix: dashboards of other cloud controller managers go on. Addresses are written
 * before the taint goes, so both times are the same. @see cloud-provider controllers/node/metrics.go
 */
function createDelayObserver(registry: Registry): (ageS: number) => void {
  const factory = createMetricFactory('node_controller_', registry);
  const taint = factory.histogram(
    'cloud_provider_taint_removal_delay_seconds',
    'Seconds from the creation of a Node until its taint of the cloud provider was removed.',
    DELAY_BUCKETS_S,
  );
  const sync = factory.histogram(
    'initial_node_sync_delay_seconds',
    'Seconds from the creation of a Node until it had all that its instance gives it.',
    DELAY_BUCKETS_S,
  );
  return (ageS) => {
    taint.observe(ageS);
    sync.observe(ageS);
  };
}

/** Counts comparisons too, as upstream does and by its name. @see cloud-provider controllers/route/metrics.go */
function countSyncs(factory: MetricFactory): ReturnType<typeof createRoutesObserver> {
  const observer = createRoutesObserver(factory);
  const upstream = createMetricFactory('route_controller_', factory.registry);
  const syncs = upstream.counter('route_sync_total', 'Times that routes were compared with the Nodes.');
  return {
    ...observer,
    onRoutes: (counts) => {
      syncs.inc();
      observer.onRoutes(counts);
    },
  };
}

function showState(factory: MetricFactory, problems: ProblemRegistry, now: () => CcmState): void {
  factory.gauge('problem', 'What is wrong now; several of a kind may be put together.', ['kind', 'name'], (gauge) => {
    for (const { kind, name, count } of problems.samples()) gauge.set({ kind, name }, count);
  });
  factory.gauge('leader', '1 while this replica leads.', [], (gauge) => gauge.set(now().isLeading() ? 1 : 0));
  factory.gauge(
    'controller',
    '1 for the state of each controller of this replica: running, waiting for another program that does the same, standby, off by --controllers, or noRights.',
    ['controller', 'state'],
    (gauge) => {
      for (const [controller, one] of now().controllers()) gauge.set({ controller, state: one }, 1);
    },
  );
}
