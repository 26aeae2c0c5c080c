import type { KubeObserver } from '../../kube/kube-observer.ts';
import type { Clock } from '../../runtime/clock.ts';
import {
  collected,
  counter,
  histogram,
  type MetricRows,
  MS_PER_S,
  type OpenMetrics,
  openMetrics,
  samplesBy,
} from '../../runtime/metrics/metric-table.ts';
import { type AboutProcess, PROCESS_ROWS } from '../../runtime/metrics/process-rows.ts';

/** State that is read at each scrape. */
type StateSources = {
  readonly sizes: () => Readonly<Record<string, number>>;
  readonly isLeading: () => boolean;
  /** Undefined while the server runs without a certificate. */
  readonly certificate: () => { readonly expiresMs: number; readonly hasProblem: boolean } | undefined;
};

/** `now` is absent until the extender is made. */
type Scraped = AboutProcess & { now?: StateSources };

/** Seconds. An answer from the index takes about a millisecond; an answer that waits takes seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 2.5, 5, 10];

const ROWS = {
  requests: counter(
    'requests_total',
    'Requests of kube-scheduler, by verb and what became of them.',
    'verb',
    'outcome',
  ),
  requestSeconds: histogram(
    'request_seconds',
    'How long requests took, waits for what was about to be there included.',
    BUCKETS_S,
    'verb',
  ),
  kubeRequests: counter('kube_requests_total', 'Calls to the API server.', 'verb', 'resource', 'outcome'),
  leading: collected('leading', '1 while this replica leads.', [], ({ now }: Scraped) => now?.isLeading()),
  indexObjects: collected(
    'index_objects',
    'What the index holds, by kind; reservations are places promised to Pods that were not seen bound.',
    ['kind'],
    ({ now }: Scraped) => samplesBy('kind', Object.entries(now?.sizes() ?? {})),
  ),
  certificateExpiry: collected(
    'certificate_expiry_seconds',
    'When the certificate ends, seconds since 1970; none without TLS.',
    [],
    ({ now }: Scraped) => {
      const expiresMs = now?.certificate()?.expiresMs;
      return expiresMs && expiresMs / MS_PER_S;
    },
  ),
  certificateProblem: collected(
    'certificate_problem',
    '1 while the files of the certificate cannot be used as they are.',
    [],
    ({ now }: Scraped) => now?.certificate()?.hasProblem,
  ),
  ...PROCESS_ROWS,
  info: { ...PROCESS_ROWS.info, name: 'build_info', help: 'Always 1; the release is in the label.' },
  cpuSeconds: { ...PROCESS_ROWS.cpuSeconds, help: 'Processor time that it took so far.' },
} satisfies MetricRows<Scraped>;

/** All metrics of the scheduler extender. */
export const SCHEDULER_METRICS = { prefix: 'tke_eni_ip_scheduler_', rows: ROWS };

/** The metrics of the scheduler extender. */
export type SchedulerMetrics = OpenMetrics<typeof ROWS> & {
  readonly kube: KubeObserver;
  /** Monotonic milliseconds of the last successful call to the API server. */
  readonly contact: { readonly lastOkMs: number };
  /** Sets the sources of the state metrics. */
  show(sources: StateSources): void;
};

/** Opens the metrics of the scheduler extender. */
export function createSchedulerMetrics(clock: Clock, about: AboutProcess): SchedulerMetrics {
  const scraped: Scraped = { ...about };
  const metrics = openMetrics(SCHEDULER_METRICS, scraped);
  const contact = { lastOkMs: Number.NEGATIVE_INFINITY };
  const kube: KubeObserver = {
    onRequest: ({ verb, resource, outcome }) => {
      metrics.kubeRequests.inc({ verb, resource, outcome });
      if (outcome === 'ok') contact.lastOkMs = clock.monotonicMs();
    },
  };
  const show: SchedulerMetrics['show'] = (sources) => {
    scraped.now = sources;
  };
  return { ...metrics, kube, contact, show };
}
