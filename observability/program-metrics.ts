import type { PacedRate } from '../cloud/pacing/call-limiter.ts';
import type { CallObserver } from '../cloud/tencent/caller.ts';
import { productOf } from '../cloud/tencent/requests.ts';
import type { TencentCloud } from '../cloud/tencent/tencent-cloud.ts';
import type { ControllerObserver } from '../kube/controller.ts';
import type { InformerObserver } from '../kube/informer.ts';
import type { KubeObserver } from '../kube/kube-observer.ts';
import type { Clock } from '../runtime/clock.ts';
import {
  collected,
  counter,
  histogram,
  type MetricRows,
  type MetricsOf,
  MS_PER_S,
  samplesBy,
  termGauge,
} from '../runtime/metrics/metric-table.ts';
import { type AboutProcess, PROCESS_ROWS } from '../runtime/metrics/process-rows.ts';
import { CloudRights } from './cloud-rights.ts';
import type { InformerSample } from './informer-sample.ts';
import { ProblemRegistry } from './problem-registry.ts';
import { RateMeter } from './rate-meter.ts';

/** What is read at each scrape of a program that calls the cloud and the API server, and leads or stands by. */
export type ProgramSources = AboutProcess & {
  readonly clock: Clock;
  readonly meter: RateMeter;
  readonly problems: ProblemRegistry;
  /** Rate limits of the cloud adapter. */
  pacing?: Pacing | undefined;
  informers?: () => Iterable<InformerSample>;
  isLeading?: () => boolean;
};

/** Rate limits of the cloud adapter. */
export type Pacing = Pick<TencentCloud['pacing'], 'rates'>;

const CALL_BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_BUCKETS_S = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const WORK_BUCKETS_S = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60];

/** The metrics that each such program has. */
export const PROGRAM_ROWS = {
  problem: collected(
    'problem',
    'What is wrong now; several of a kind may be put together.',
    ['kind', 'name'],
    ({ problems }) => problems.samples().map(({ kind, name, count }) => [{ kind, name }, count]),
  ),
  leader: collected('leader', '1 while this replica leads.', [], ({ isLeading }) => isLeading?.()),
  informerAge: collected(
    'informer_age_seconds',
    'Time since the last answer or event of the API server.',
    ['resource'],
    ({ informers, clock }) =>
      samplesBy(
        'resource',
        [...(informers?.() ?? [])]
          .map(({ resource, lastContactMs }) => [resource, (clock.monotonicMs() - lastContactMs) / MS_PER_S] as const)
          .filter(([, age]) => Number.isFinite(age)),
      ),
  ),
  informerSynced: collected('informer_synced', '1 when the collection was read once.', ['resource'], ({ informers }) =>
    [...(informers?.() ?? [])].map(({ resource, isSynced }) => [{ resource }, isSynced ? 1 : 0]),
  ),
  informerObjects: collected('informer_objects', 'Objects that are kept.', ['resource'], ({ informers }) =>
    [...(informers?.() ?? [])].map(({ resource, size }) => [{ resource }, size]),
  ),
  informerLists: counter('informer_lists_total', 'Whole lists that were read.', 'resource'),
  informerFailures: counter('informer_failures_total', 'Lists and watches that failed or broke.', 'resource'),
  informerUndecodable: counter('informer_undecodable_total', 'Objects skipped, once for each version.', 'resource'),
  reconciles: histogram(
    'reconcile_seconds',
    'Time of one reconcile of one key, by how it ended.',
    WORK_BUCKETS_S,
    'controller',
    'outcome',
  ),
  kubeRequests: counter('kube_requests_total', 'Requests to the API server.', 'verb', 'resource', 'outcome'),
  kubeRequestTime: histogram(
    'kube_request_seconds',
    'Time that a request took; watches left out.',
    CALL_BUCKETS_S,
    'verb',
  ),
  kubeWaits: histogram(
    'kube_wait_seconds',
    'Time that a request waited for its turn, under the limit of calls a second.',
    WAIT_BUCKETS_S,
  ),
  cloudCalls: counter('cloud_calls_total', 'Attempts of cloud calls, by error code; ok went well.', 'action', 'code'),
  cloudRetries: counter('cloud_retries_total', 'Attempts that were not the first of their call.', 'action'),
  cloudCallTime: histogram('cloud_call_seconds', 'Time that an attempt was under way.', CALL_BUCKETS_S, 'action'),
  cloudWaits: histogram('cloud_wait_seconds', 'Time that an attempt waited for its turn.', WAIT_BUCKETS_S, 'action'),
  cloudWaiting: collected(
    'cloud_calls_waiting',
    'Cloud calls that wait for their turn.',
    ['product', 'action'],
    perRate(({ waiting }) => waiting),
  ),
  cloudRates: collected(
    'cloud_rate_allowed',
    'Calls a second that the pacing allows now.',
    ['product', 'action'],
    perRate(({ perSecond }) => perSecond),
  ),
  cloudBudgets: collected(
    'cloud_budget_left',
    'Calls a second that are allowed and were not made.',
    ['product', 'action'],
    perRate(({ product, action = product, perSecond }, { meter, clock }) =>
      Math.max(0, perSecond - meter.perSecond(action, clock.monotonicMs())),
    ),
  ),
  clusterRoutes: termGauge(
    'cluster_routes',
    "The VPC's routes to the networks of Nodes, by how they stood at the last comparison.",
    'state',
  ),
  clusterRouteChanges: counter(
    'cluster_route_changes_total',
    "Changes of the VPC's routes to networks of Nodes.",
    'kind',
    'code',
  ),
  clusterRouteListFailures: counter(
    'cluster_route_list_failures_total',
    "Times that the VPC's routes could not be read.",
  ),
  ...PROCESS_ROWS,
} satisfies MetricRows<ProgramSources>;

/** A sample for each rate limit; that without an action is of the whole product. */
function perRate(value: (rate: PacedRate, sources: ProgramSources) => number) {
  return (sources: ProgramSources) =>
    [...(sources.pacing?.rates() ?? [])].map((rate) => {
      const { product, action = '' } = rate;
      return [{ product, action }, value(rate, sources)] as const;
    });
}

type ProgramMetrics = MetricsOf<typeof PROGRAM_ROWS>;

/** Metrics of the routes to the networks of Nodes. */
export type RouteMetrics = Pick<ProgramMetrics, 'clusterRoutes' | 'clusterRouteChanges' | 'clusterRouteListFailures'>;

/** Time of the last successful request to the API server; monotonic milliseconds, minus infinity before the first. */
export type KubeContact = { lastOkMs: number };

/** Makes the sources that every program has from its start. */
export function openSources(clock: Clock, about: AboutProcess): ProgramSources {
  return { ...about, clock, meter: new RateMeter(), problems: new ProblemRegistry() };
}

/**
 * Makes what the clients and controllers of a program report to: it counts in `metrics`, and notes what health and the
 * reports of the cloud's refusals need.
 */
export function observeProgram(metrics: ProgramMetrics, { clock, meter, problems }: ProgramSources, program: string) {
  const contact: KubeContact = { lastOkMs: Number.NEGATIVE_INFINITY };
  const cloudRights = new CloudRights(problems, program);
  const cloud: CallObserver = {
    onAttempt: ({ action, attempt, waitedMs, tookMs, code }) => {
      metrics.cloudCalls.inc({ action, code: code ?? 'ok' });
      if (attempt > 1) metrics.cloudRetries.inc({ action });
      metrics.cloudCallTime.observeMs({ action }, tookMs);
      metrics.cloudWaits.observeMs({ action }, waitedMs);
      for (const key of [action, productOf(action)]) meter.note(key, clock.monotonicMs());
      cloudRights.onAttempt({ action, code });
    },
    onKeyFailure: (kind, text) => cloudRights.onKeyFailure(kind, text),
  };
  const kube: KubeObserver = {
    onRequest: ({ verb, resource, outcome, ms }) => {
      metrics.kubeRequests.inc({ verb, resource, outcome });
      if (verb !== 'watch') metrics.kubeRequestTime.observeMs({ verb }, ms);
      if (outcome === 'ok') contact.lastOkMs = clock.monotonicMs();
    },
    onRateLimitWait: (waitedMs) => metrics.kubeWaits.observeMs(waitedMs),
  };
  const informer: InformerObserver = {
    onList: ({ plural }) => metrics.informerLists.inc({ resource: plural }),
    onFailure: ({ plural }) => metrics.informerFailures.inc({ resource: plural }),
    onUndecodable: ({ plural }) => metrics.informerUndecodable.inc({ resource: plural }),
  };
  const controller: ControllerObserver = {
    onReconcile: ({ controller: name, outcome, ms }) => metrics.reconciles.observeMs({ controller: name, outcome }, ms),
  };
  return { cloud, kube, informer, controller, problems, cloudRights, contact };
}
