import type { Registry } from 'prom-client';
import type { CallObserver } from '../../cloud/tencent/caller.ts';
import { DEFAULT_MIN_WARM_IPS } from '../../crd/new-node.ts';
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
import { createMetricFactory, MS_PER_S } from '../../observability/metric-factory.ts';
import { ProblemRegistry } from '../../observability/problem-registry.ts';
import { showProcess } from '../../observability/process-metrics.ts';
import { RateMeter } from '../../observability/rate-meter.ts';
import { createRoutesObserver, type RoutesObserver } from '../../observability/route-metrics.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ProcessUsage } from '../../runtime/process-usage.ts';
import type { CiliumObserver } from '../cilium/cilium-reconciler.ts';
import type { NodesObserver } from '../node-lifecycle/node-controller.ts';
import type { PodCidrObserver } from '../pod-cidrs/pod-cidr-reports.ts';
import type { ClaimAuditObserver } from '../static/audit-claims.ts';
import type { ClaimsObserver } from '../static/claim-reconciler.ts';
import type { ReservationSweepObserver } from '../static/sweep-reservations.ts';
import type { SubnetsObserver } from '../subnets/open-subnets.ts';
import type { NodeObserver } from '../supply/node-deps.ts';
import { type NecChange, ReadyTimer } from './ready-timer.ts';
import {
  type AuditObserver,
  createAuditObserver,
  createCiliumObserver,
  createClaimsObserver,
  createNodeObserver,
  createNodesObserver,
  createPodCidrObserver,
  createRecordsObserver,
  createRefreshObserver,
  createSubnetsObserver,
  NODE_REPORTERS,
  WARM_BUCKETS_S,
} from './role-metrics.ts';
import { NO_STATE, type StateSources, showState } from './state-metrics.ts';

/** All metrics of ipamd. Create them before the clients, which use their observers. */
export type IpamdMetrics = {
  readonly cloud: CallObserver;
  readonly kube: KubeObserver;
  readonly informer: InformerObserver;
  readonly controller: ControllerObserver;
  readonly node: NodeObserver;
  readonly nodes: NodesObserver;
  readonly subnets: SubnetsObserver;
  readonly routes: RoutesObserver;
  readonly podCidrs: PodCidrObserver;
  readonly cilium: CiliumObserver;
  readonly audit: AuditObserver;
  readonly claims: ClaimsObserver & ClaimAuditObserver & ReservationSweepObserver;
  readonly records: { onWrite(kind: string, result: string): void };
  readonly onInstancesRefresh: (refresh: { readonly instances: number; readonly isFailed: boolean }) => void;
  readonly problems: ProblemRegistry;
  /** Refusals of the cloud that concern all callers. */
  readonly cloudRights: CloudRights;
  readonly contact: Readonly<KubeContact>;
  /** Counts a change of a cached NodeENIConfig. */
  necChanged(change: NecChange): void;
  /** Sets the sources of the state from now on. */
  show(sources: StateSources, pacing: Pacing | undefined): void;
  /** Clears the state that only a leader has: another replica leads now. */
  clearTerm(): void;
  readonly registry: Registry;
};

/**
 * Creates ipamd's metrics in a registry of their own. Default metrics of the library are left out: its gauge of the
 * event loop's lag runs a hundred times a second in an idle process.
 */
export function createIpamdMetrics(
  clock: Clock,
  about: { readonly release: string; readonly usage?: () => ProcessUsage; readonly minWarmIps?: number },
): IpamdMetrics {
  const factory = createMetricFactory('tke_eni_ipamd_');
  const meter = new RateMeter();
  const problems = new ProblemRegistry();
  const contact: KubeContact = { lastOkMs: Number.NEGATIVE_INFINITY };
  let sources = NO_STATE;
  let pacing: Pacing | undefined;
  showState(factory, clock, problems, () => sources);
  showPacing(factory, clock, meter, () => pacing);
  showProcess(factory, about);
  const cloudRights = new CloudRights(problems, 'ipamd');
  const counted = createCloudObserver(factory, clock, meter);
  const readyTimer = new ReadyTimer();
  const nodes = createNodesObserver(factory, problems);
  const subnets = createSubnetsObserver(factory, problems, {
    minWarmIps: about.minWarmIps ?? DEFAULT_MIN_WARM_IPS,
    zones: () => zonesOf(sources.necs()),
  });
  const routes = createRoutesObserver(factory);
  const podCidrs = createPodCidrObserver(factory, problems);
  const cilium = createCiliumObserver(factory, clock, problems);
  const audit = createAuditObserver(factory);
  const claims = createClaimsObserver(factory);
  const secondsToWarm = factory.histogram(
    'node_warm_seconds',
    'Time from the creation of a NodeENIConfig to its first being ready.',
    WARM_BUCKETS_S,
  );
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
    node: createNodeObserver(factory, problems),
    nodes,
    subnets,
    routes,
    podCidrs,
    cilium,
    audit,
    claims,
    records: createRecordsObserver(factory),
    onInstancesRefresh: createRefreshObserver(factory),
    problems,
    cloudRights,
    contact,
    necChanged: (change) => {
      const tookMs = readyTimer.record(change, clock.nowMs());
      if (tookMs !== undefined) secondsToWarm.observe(tookMs / MS_PER_S);
    },
    show: (newSources, newPacing) => {
      sources = newSources;
      pacing = newPacing;
    },
    clearTerm: () => {
      problems.removeAll(NODE_REPORTERS);
      nodes.clear();
      subnets.clear();
      routes.clear();
      podCidrs.clear();
      cilium.clear();
      audit.clear();
      claims.clear();
    },
    registry: factory.registry,
  };
}

/** Lists the zones of nodes that name no subnets of their own. */
function zonesOf(necs: ReturnType<StateSources['necs']>): ReadonlySet<string> {
  const zones = new Set<string>();
  for (const { decoded } of necs) {
    const zone = decoded?.status?.zone ?? '';
    if (zone !== '' && (decoded?.spec?.subnetIDs ?? []).length === 0) zones.add(zone);
  }
  return zones;
}
