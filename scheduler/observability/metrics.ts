import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { KubeObserver } from '../../kube/kube-observer.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ProcessUsage } from '../../runtime/process-usage.ts';
import type { RequestOutcome } from '../http/serve-extender.ts';

/** State that is read at each scrape. */
type StateSources = {
  readonly sizes: () => Readonly<Record<string, number>>;
  readonly isLeading: () => boolean;
  /** Undefined while the server runs without a certificate. */
  readonly certificate: () => { readonly expiresMs: number; readonly hasProblem: boolean } | undefined;
};

/** The metrics of the scheduler extender. */
export type SchedulerMetrics = {
  readonly registry: Registry;
  readonly kube: KubeObserver;
  /** Monotonic milliseconds of the last successful call to the API server. */
  readonly contact: { readonly lastOkMs: number };
  onAnswer(verb: string, outcome: RequestOutcome, ms: number): void;
  /** Sets the sources of the state metrics. */
  show(sources: StateSources): void;
};

const PREFIX = 'tke_eni_ip_scheduler_';
const MS_PER_S = 1000;
/** Seconds. An answer from the index takes about a millisecond; an answer that waits takes seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 2.5, 5, 10];

/** Creates the metrics in a registry of their own. */
export function createSchedulerMetrics(
  clock: Clock,
  { release, usage }: { readonly release: string; readonly usage?: () => ProcessUsage },
): SchedulerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const contact = { lastOkMs: Number.NEGATIVE_INFINITY };
  let sources: StateSources | undefined;
  const gauge = (
    name: string,
    help: string,
    collect: (one: Gauge) => void,
    labelNames: readonly string[] = [],
  ): void => {
    const configuration = { name: `${PREFIX}${name}`, help, labelNames, registers };
    const made: Gauge = new Gauge({ ...configuration, collect: (): void => collect(made) });
  };
  const requests = new Counter({
    name: `${PREFIX}requests_total`,
    help: 'Requests of kube-scheduler, by verb and what became of them.',
    labelNames: ['verb', 'outcome'] as const,
    registers,
  });
  const seconds = new Histogram({
    name: `${PREFIX}request_seconds`,
    help: 'How long requests took, waits for what was about to be there included.',
    labelNames: ['verb'] as const,
    buckets: BUCKETS_S,
    registers,
  });
  const calls = new Counter({
    name: `${PREFIX}kube_requests_total`,
    help: 'Calls to the API server.',
    labelNames: ['verb', 'resource', 'outcome'] as const,
    registers,
  });
  gauge('leading', '1 while this replica leads.', (one) => one.set(sources?.isLeading() === true ? 1 : 0));
  gauge(
    'index_objects',
    'What the index holds, by kind; reservations are places promised to Pods that were not seen bound.',
    (one) => {
      for (const [kind, size] of Object.entries(sources?.sizes() ?? {})) one.set({ kind }, size);
    },
    ['kind'],
  );
  gauge('certificate_expiry_seconds', 'When the certificate ends, seconds since 1970; none without TLS.', (one) => {
    const expiresMs = sources?.certificate()?.expiresMs;
    one.reset();
    if (expiresMs !== undefined) one.set(expiresMs / MS_PER_S);
  });
  gauge('certificate_problem', '1 while the files of the certificate cannot be used as they are.', (one) =>
    one.set(sources?.certificate()?.hasProblem === true ? 1 : 0),
  );
  gauge('build_info', 'Always 1; the release is in the label.', (one) => one.set({ release }, 1), ['release']);
  if (usage !== undefined) {
    gauge('resident_memory_bytes', 'Memory of the process.', (one) => one.set(usage().residentBytes));
    gauge('heap_used_bytes', "Memory that V8's heap uses.", (one) => one.set(usage().heapBytes));
    gauge('cpu_seconds', 'Processor time that it took so far.', (one) => one.set(usage().cpuSeconds));
  }
  return {
    registry,
    contact,
    kube: {
      onRequest: ({ verb, resource, outcome }) => {
        calls.inc({ verb, resource, outcome });
        if (outcome === 'ok') contact.lastOkMs = clock.monotonicMs();
      },
    },
    onAnswer: (verb, outcome, ms) => {
      requests.inc({ verb, outcome });
      seconds.observe({ verb }, ms / MS_PER_S);
    },
    show: (newSources) => {
      sources = newSources;
    },
  };
}
