import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ProcessUsage } from '../runtime/process-usage.ts';
import type { ReviewOutcome } from './answer-review.ts';

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

/** The outcome of a request: that of its review, or why there was no review. */
export type RequestOutcome =
  | ReviewOutcome
  | 'no-review'
  | 'too-large'
  | 'busy'
  | 'cut-off'
  | 'wrong-request'
  | 'forbidden'
  | 'failed';

/** The metrics of the webhook. */
export type WebhookMetrics = {
  /** Counts a request; `tookMs` is the time from its headers to its answer. */
  onRequest(outcome: RequestOutcome, tookMs: number): void;
  /** Counts warnings that were returned. */
  onWarnings(count: number): void;
  /** Sets the source of the state metrics. */
  show(state: () => WebhookState): void;
  readonly registry: Registry;
};

const PREFIX = 'tke_eni_ip_webhook_';
const MS_PER_S = 1000;
/** Seconds. A decision takes well below a millisecond; the API server waits for five seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5];

/** Creates the webhook's metrics in a registry of their own. */
export function createWebhookMetrics(about: {
  readonly release: string;
  readonly usage?: () => ProcessUsage;
}): WebhookMetrics {
  const registry = new Registry();
  const registers = [registry];
  let state: (() => WebhookState) | undefined;
  const gauge = (name: string, help: string, read: () => number | undefined): void => {
    new Gauge({
      name: `${PREFIX}${name}`,
      help,
      registers,
      collect() {
        this.reset();
        const value = read();
        if (value !== undefined) this.set(value);
      },
    });
  };
  const requests = new Counter({
    name: `${PREFIX}requests_total`,
    help: 'Requests of the API server, by how they ended.',
    labelNames: ['outcome'],
    registers,
  });
  const took = new Histogram({
    name: `${PREFIX}request_seconds`,
    help: 'Time from the headers of a request to its answer.',
    buckets: BUCKETS_S,
    registers,
  });
  const warnings = new Counter({ name: `${PREFIX}warnings_total`, help: 'Warnings that were given.', registers });
  new Gauge({ name: `${PREFIX}info`, help: 'Which release this is.', labelNames: ['release'], registers }).set(
    { release: about.release },
    1,
  );
  gauge('certificate_expiry_seconds', 'When the certificate ends, seconds since 1970.', () => {
    const expiresMs = state?.().expiresMs;
    return expiresMs === undefined ? undefined : expiresMs / MS_PER_S;
  });
  gauge('certificate_reloads', 'How often another certificate was loaded.', () => state?.().reloads);
  gauge('certificate_problem', '1 while the files of the certificate cannot be used as they are.', () =>
    numberOf(state?.().hasCertificateProblem),
  );
  gauge('static_ip_configs', 'StaticIPConfigs that are known.', () => state?.().staticIpConfigs);
  gauge('static_ip_configs_followed', '1 while StaticIPConfigs were read and are followed.', () =>
    numberOf(state?.().isFollowing),
  );
  gauge(
    'direct_services',
    'Services whose Pods are backends of load balancers; with --readiness-gates.',
    () => state?.().directServices,
  );
  gauge('direct_services_followed', '1 while Services were read and are followed; with --readiness-gates.', () =>
    numberOf(state?.().isFollowingServices),
  );
  gauge(
    'direct_ingresses',
    'Ingresses that lead to Pods by their addresses; with --readiness-gates.',
    () => state?.().directIngresses,
  );
  gauge('direct_ingresses_followed', '1 while Ingresses were read and are followed; with --readiness-gates.', () =>
    numberOf(state?.().isFollowingIngresses),
  );
  const { usage } = about;
  if (usage !== undefined) {
    gauge('resident_memory_bytes', 'Memory of the process.', () => usage().residentBytes);
    gauge('heap_used_bytes', "Memory that V8's heap uses.", () => usage().heapBytes);
    gauge('cpu_seconds', 'Processor time that the process used.', () => usage().cpuSeconds);
  }
  return {
    onRequest: (outcome, tookMs) => {
      requests.inc({ outcome });
      took.observe(tookMs / MS_PER_S);
    },
    onWarnings: (count) => warnings.inc(count),
    show: (next) => {
      state = next;
    },
    registry,
  };
}

function numberOf(is: boolean | undefined): number | undefined {
  return is === undefined ? undefined : Number(is);
}
