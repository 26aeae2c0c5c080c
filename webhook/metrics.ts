import {
  collected,
  counter,
  histogram,
  type MetricRows,
  MS_PER_S,
  type OpenMetrics,
  openMetrics,
} from '../runtime/metrics/metric-table.ts';
import { type AboutProcess, PROCESS_ROWS } from '../runtime/metrics/process-rows.ts';

/** State that is read at each scrape. */
type WebhookState = {
  readonly expiresMs: number;
  readonly reloads: number;
  readonly hasCertificateProblem: boolean;
  readonly staticIpConfigs: number;
  readonly isFollowing: boolean;
  /** Absent while Services are not asked for. */
  readonly directServices?: number;
  readonly directIngresses?: number;
  readonly isFollowingIngresses?: boolean;
  readonly isFollowingServices?: boolean;
};

/** `now` is absent until the webhook serves. */
type Scraped = AboutProcess & { now?: () => WebhookState };

/** Seconds. A decision takes well below a millisecond; the API server waits for five seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5];

const ROWS = {
  requests: counter('requests_total', 'Requests of the API server, by how they ended.', 'outcome'),
  requestSeconds: histogram('request_seconds', 'Time from the headers of a request to its answer.', BUCKETS_S),
  warnings: counter('warnings_total', 'Warnings that were given.'),
  certificateExpiry: shown(
    'certificate_expiry_seconds',
    'When the certificate ends, seconds since 1970.',
    ({ expiresMs }) => expiresMs / MS_PER_S,
  ),
  reloads: shown('certificate_reloads', 'How often another certificate was loaded.', ({ reloads }) => reloads),
  certificateProblem: shown(
    'certificate_problem',
    '1 while the files of the certificate cannot be used as they are.',
    ({ hasCertificateProblem }) => hasCertificateProblem,
  ),
  staticIpConfigs: shown('static_ip_configs', 'StaticIPConfigs that are known.', (now) => now.staticIpConfigs),
  staticIpConfigsFollowed: shown(
    'static_ip_configs_followed',
    '1 while StaticIPConfigs were read and are followed.',
    ({ isFollowing }) => isFollowing,
  ),
  directServices: shown(
    'direct_services',
    'Services whose Pods are backends of load balancers; with --readiness-gates.',
    (now) => now.directServices,
  ),
  directServicesFollowed: shown(
    'direct_services_followed',
    '1 while Services were read and are followed; with --readiness-gates.',
    ({ isFollowingServices }) => isFollowingServices,
  ),
  directIngresses: shown(
    'direct_ingresses',
    'Ingresses that lead to Pods by their addresses; with --readiness-gates.',
    (now) => now.directIngresses,
  ),
  directIngressesFollowed: shown(
    'direct_ingresses_followed',
    '1 while Ingresses were read and are followed; with --readiness-gates.',
    ({ isFollowingIngresses }) => isFollowingIngresses,
  ),
  ...PROCESS_ROWS,
} satisfies MetricRows<Scraped>;

/** All metrics of the webhook. */
export const WEBHOOK_METRICS = { prefix: 'tke_eni_ip_webhook_', rows: ROWS };

function shown(name: string, help: string, read: (now: WebhookState) => number | boolean | undefined) {
  return collected(name, help, [], ({ now }: Scraped) => now && read(now()));
}

/** The metrics of the webhook. */
export type WebhookMetrics = OpenMetrics<typeof ROWS> & {
  /** Sets the source of the state metrics. */
  show(state: () => WebhookState): void;
};

/** Opens the metrics of the webhook. */
export function createWebhookMetrics(about: AboutProcess): WebhookMetrics {
  const scraped: Scraped = { ...about };
  const show: WebhookMetrics['show'] = (state) => {
    scraped.now = state;
  };
  return { ...openMetrics(WEBHOOK_METRICS, scraped), show };
}
