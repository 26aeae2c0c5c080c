import type { PacedRate } from '../cloud/pacing/call-limiter.ts';
import type { CallObserver } from '../cloud/tencent/caller.ts';
import { productOf } from '../cloud/tencent/requests.ts';
import type { TencentCloud } from '../cloud/tencent/tencent-cloud.ts';
import type { ControllerObserver } from '../kube/controller.ts';
import type { InformerObserver } from '../kube/informer.ts';
import type { KubeObserver } from '../kube/kube-observer.ts';
import type { Clock } from '../runtime/clock.ts';
import { type MetricFactory, MS_PER_S } from './metric-factory.ts';
import type { RateMeter } from './rate-meter.ts';

const CALL_BUCKETS_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_BUCKETS_S = [0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const WORK_BUCKETS_S = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60];

/** Rate limits of the cloud adapter. */
export type Pacing = Pick<TencentCloud['pacing'], 'rates'>;

/** Counts every attempt of a cloud call. */
export function createCloudObserver(factory: MetricFactory, clock: Clock, meter: RateMeter): CallObserver {
  const calls = factory.counter('cloud_calls_total', 'Attempts of cloud calls, by error code; ok went well.', [
    'action',
    'code',
  ]);
  const retries = factory.counter('cloud_retries_total', 'Attempts that were not the first of their call.', ['action']);
  const took = factory.histogram('cloud_call_seconds', 'Time that an attempt was under way.', CALL_BUCKETS_S, [
    'action',
  ]);
  const waited = factory.histogram('cloud_wait_seconds', 'Time that an attempt waited for its turn.', WAIT_BUCKETS_S, [
    'action',
  ]);
  return {
    onAttempt: ({ action, attempt, waitedMs, tookMs, code }) => {
      calls.inc({ action, code: code ?? 'ok' });
      if (attempt > 1) retries.inc({ action });
      took.observe({ action }, tookMs / MS_PER_S);
      waited.observe({ action }, waitedMs / MS_PER_S);
      meter.note(action, clock.monotonicMs());
      meter.note(productOf(action), clock.monotonicMs());
    },
  };
}

/** Adds the gauges of the rate limits; the series without an action is that of the whole product. */
export function showPacing(
  factory: MetricFactory,
  clock: Clock,
  meter: RateMeter,
  pacing: () => Pacing | undefined,
): void {
  const labels = ['product', 'action'] as const;
  const rates = (): Iterable<PacedRate> => pacing()?.rates() ?? [];
  factory.gauge('cloud_calls_waiting', 'Cloud calls that wait for their turn.', labels, (gauge) => {
    for (const { product, action = '', waiting } of rates()) gauge.set({ product, action }, waiting);
  });
  factory.gauge('cloud_rate_allowed', 'Calls a second that the pacing allows now.', labels, (gauge) => {
    for (const { product, action = '', perSecond } of rates()) gauge.set({ product, action }, perSecond);
  });
  factory.gauge('cloud_budget_left', 'Calls a second that are allowed and were not made.', labels, (gauge) => {
    for (const { product, action = '', perSecond } of rates()) {
      const used = meter.perSecond(action === '' ? product : action, clock.monotonicMs());
      gauge.set({ product, action }, Math.max(0, perSecond - used));
    }
  });
}

/** Time of the last successful request to the API server; monotonic milliseconds, minus infinity before the first. */
export type KubeContact = { lastOkMs: number };

/** Counts every request to the API server. */
export function createKubeObserver(factory: MetricFactory, clock: Clock, contact: KubeContact): KubeObserver {
  const requests = factory.counter('kube_requests_total', 'Requests to the API server.', [
    'verb',
    'resource',
    'outcome',
  ]);
  const took = factory.histogram(
    'kube_request_seconds',
    'Time that a request took; watches left out.',
    CALL_BUCKETS_S,
    ['verb'],
  );
  const waited = factory.histogram(
    'kube_wait_seconds',
    'Time that a request waited for its turn, under the limit of calls a second.',
    WAIT_BUCKETS_S,
  );
  return {
    onRequest: ({ verb, resource, outcome, ms }) => {
      requests.inc({ verb, resource, outcome });
      if (verb !== 'watch') took.observe({ verb }, ms / MS_PER_S);
      if (outcome === 'ok') contact.lastOkMs = clock.monotonicMs();
    },
    onRateLimitWait: (waitedMs) => waited.observe(waitedMs / MS_PER_S),
  };
}

/** Counts lists and failures of informers. */
export function createInformerObserver(factory: MetricFactory): InformerObserver {
  const lists = factory.counter('informer_lists_total', 'Whole lists that were read.', ['resource']);
  const failures = factory.counter('informer_failures_total', 'Lists and watches that failed or broke.', ['resource']);
  const undecodable = factory.counter('informer_undecodable_total', 'Objects skipped, once for each version.', [
    'resource',
  ]);
  return {
    onList: ({ plural }) => lists.inc({ resource: plural }),
    onFailure: ({ plural }) => failures.inc({ resource: plural }),
    onUndecodable: ({ plural }) => undecodable.inc({ resource: plural }),
  };
}

/** Measures the reconciles of controllers. */
export function createControllerObserver(factory: MetricFactory): ControllerObserver {
  const took = factory.histogram(
    'reconcile_seconds',
    'Time of one reconcile of one key, by how it ended.',
    WORK_BUCKETS_S,
    ['controller', 'outcome'],
  );
  return {
    onReconcile: ({ controller, outcome, ms }) => took.observe({ controller, outcome }, ms / MS_PER_S),
  };
}
