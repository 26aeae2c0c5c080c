import type { Informer } from '../kube/informer.ts';
import type { Clock } from '../runtime/clock.ts';
import { type MetricFactory, MS_PER_S } from './metric-factory.ts';

/** State of an informer. */
export type InformerSample = {
  readonly resource: string;
  readonly isSynced: boolean;
  readonly size: number;
  /** Monotonic milliseconds. */
  readonly lastContactMs: number;
};

/** Returns samples of informers with their names, for health and metrics. */
export function sampleInformers(
  informers: Readonly<Record<string, Informer<unknown> | undefined>>,
): readonly InformerSample[] {
  return Object.entries(informers).flatMap(([resource, informer]) => {
    if (informer === undefined) return [];
    const { isSynced, size, lastContactMs } = informer;
    return [{ resource, isSynced, size, lastContactMs }];
  });
}

/** State of a controller's queue. */
export type QueueSample = { readonly queue: string; readonly waiting: number; readonly running: number };

/** Sources of the state of informers and queues; read at each scrape. */
type WorkSources = {
  readonly informers: () => Iterable<InformerSample>;
  readonly queues: () => Iterable<QueueSample>;
};

/** Adds the gauges of informers, counted at each scrape. */
export function showInformers(factory: MetricFactory, clock: Clock, now: () => Pick<WorkSources, 'informers'>): void {
  const labels = ['resource'] as const;
  factory.gauge('informer_age_seconds', 'Time since the last answer or event of the API server.', labels, (gauge) => {
    for (const { resource, lastContactMs } of now().informers()) {
      const ageMs = clock.monotonicMs() - lastContactMs;
      if (Number.isFinite(ageMs)) gauge.set({ resource }, ageMs / MS_PER_S);
    }
  });
  factory.gauge('informer_synced', '1 when the collection was read once.', labels, (gauge) => {
    for (const { resource, isSynced } of now().informers()) gauge.set({ resource }, isSynced ? 1 : 0);
  });
  factory.gauge('informer_objects', 'Objects that are kept.', labels, (gauge) => {
    for (const { resource, size } of now().informers()) gauge.set({ resource }, size);
  });
}

/** Adds the gauges of the controllers' queues, counted at each scrape. */
export function showQueues(factory: MetricFactory, now: () => Pick<WorkSources, 'queues'>): void {
  factory.gauge('queue_length', 'Keys that wait for a worker.', ['queue'], (gauge) => {
    for (const { queue, waiting } of now().queues()) gauge.set({ queue }, waiting);
  });
  factory.gauge('queue_running', 'Keys that are worked on.', ['queue'], (gauge) => {
    for (const { queue, running } of now().queues()) gauge.set({ queue }, running);
  });
}
