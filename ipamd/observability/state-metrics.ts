import type { Clock } from '../../runtime/clock.ts';
import { type CountedNec, countNecs, type NecCounts } from './count-necs.ts';
import { type MetricFactory, MS_PER_S } from './metric-factory.ts';
import type { ProblemBook } from './problem-book.ts';

/** Something that follows objects. */
export type InformerSample = {
  readonly resource: string;
  readonly isSynced: boolean;
  readonly size: number;
  /** Monotonic milliseconds. */
  readonly lastContactMs: number;
};

/** Keys that wait for a controller. */
export type QueueSample = { readonly queue: string; readonly waiting: number; readonly running: number };

/** What a scrape looks at; each is asked anew. */
export type StateSources = {
  readonly necs: () => Iterable<CountedNec>;
  readonly informers: () => Iterable<InformerSample>;
  readonly queues: () => Iterable<QueueSample>;
  /** Undefined while another leads. */
  readonly leaderEpoch: () => number | undefined;
  /** Keys of breakers that are open: `subnet/subnet-a`, `vpc-enis`. */
  readonly openBreakers: () => Iterable<string>;
};

/** What there is before ipamd has started. */
export const NO_STATE: StateSources = {
  necs: () => [],
  informers: () => [],
  queues: () => [],
  leaderEpoch: () => undefined,
  openBreakers: () => [],
};

/** Shows the state that ipamd sees, counted when somebody scrapes. */
export function showState(factory: MetricFactory, clock: Clock, problems: ProblemBook, now: () => StateSources): void {
  showNecs(factory, clock, now);
  factory.gauge('problem', 'What is wrong now; several of a kind may be put together.', ['kind', 'name'], (gauge) => {
    for (const { kind, name, count } of problems.samples()) gauge.set({ kind, name }, count);
  });
  factory.gauge('leader', '1 while this replica leads.', [], (gauge) =>
    gauge.set(now().leaderEpoch() === undefined ? 0 : 1),
  );
  factory.gauge('breakers_open', 'Things that are not asked for now, because the cloud refused.', ['kind'], (gauge) => {
    for (const key of now().openBreakers()) gauge.inc({ kind: kindOfBreaker(key) });
  });
  showInformers(factory, clock, now);
  showQueues(factory, now);
}

function showNecs(factory: MetricFactory, clock: Clock, now: () => StateSources): void {
  // All gauges of one scrape are set within one turn of the event loop: they share one count.
  let counted: { readonly atMs: number; readonly counts: NecCounts } | undefined;
  const counts = (): NecCounts => {
    const atMs = clock.monotonicMs();
    if (counted === undefined || atMs - counted.atMs > SHARED_FOR_MS) {
      counted = { atMs, counts: countNecs(now().necs(), clock.nowMs()) };
    }
    return counted.counts;
  };
  const show = <A extends string, B extends string>(
    name: string,
    help: string,
    labels: readonly [A, B],
    pick: (all: NecCounts) => ReadonlyMap<string, number>,
  ): void => {
    factory.gauge<A | B>(name, help, labels, (gauge) => {
      for (const [key, value] of pick(counts())) {
        const [first = '', second = ''] = key.split('\t');
        gauge.labels(first, second).set(value);
      }
    });
  };
  show('addresses', 'Pod addresses of all nodes.', ['subnet', 'state'], (all) => all.addresses);
  show('enis', 'ENIs of all nodes.', ['subnet', 'state'], (all) => all.enis);
  show('nodes', 'NodeENIConfigs by their condition Ready.', ['ready', 'reason'], (all) => all.nodes);
  show('intents', 'Cloud calls on record.', ['action', 'phase'], (all) => all.intents);
  factory.gauge('intent_oldest_seconds', 'Age of the oldest call on record.', ['action'], (gauge) => {
    for (const [action, ageMs] of counts().oldestIntentMs) gauge.set({ action }, ageMs / MS_PER_S);
  });
}

const SHARED_FOR_MS = 100;

function showInformers(factory: MetricFactory, clock: Clock, now: () => StateSources): void {
  const labels = ['resource'] as const;
  factory.gauge('informer_age_seconds', 'Time since the API server last said anything.', labels, (gauge) => {
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

function showQueues(factory: MetricFactory, now: () => StateSources): void {
  factory.gauge('queue_length', 'Keys that wait for a worker.', ['queue'], (gauge) => {
    for (const { queue, waiting } of now().queues()) gauge.set({ queue }, waiting);
  });
  factory.gauge('queue_running', 'Keys that are worked on.', ['queue'], (gauge) => {
    for (const { queue, running } of now().queues()) gauge.set({ queue }, running);
  });
}

/** `subnet/subnet-a` is a kind of its own, `node/n1/call/...` another; the names would be too many labels. */
function kindOfBreaker(key: string): string {
  return key.split('/')[0] ?? key;
}
