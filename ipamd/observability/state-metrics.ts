import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type MetricFactory, MS_PER_S } from '../../observability/metric-factory.ts';
import type { ProblemRegistry } from '../../observability/problem-registry.ts';
import { type InformerSample, type QueueSample, showInformers, showQueues } from '../../observability/work-metrics.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Sources of the state; read at each scrape. */
export type StateSources = {
  readonly necs: () => Iterable<CountedNec>;
  readonly informers: () => Iterable<InformerSample>;
  readonly queues: () => Iterable<QueueSample>;
  /** Undefined while another replica leads. */
  readonly leaderEpoch: () => number | undefined;
  /** Keys of breakers that are open: `subnet/subnet-a`, `vpc-enis`. */
  readonly openBreakers: () => Iterable<string>;
};

/** The state before ipamd has started. */
export const NO_STATE: StateSources = {
  necs: () => [],
  informers: () => [],
  queues: () => [],
  leaderEpoch: () => undefined,
  openBreakers: () => [],
};

/** Adds the gauges of ipamd's state, counted at each scrape. */
export function showState(
  factory: MetricFactory,
  clock: Clock,
  problems: ProblemRegistry,
  now: () => StateSources,
): void {
  showNecs(factory, clock, now);
  factory.gauge('problem', 'What is wrong now; several of a kind may be put together.', ['kind', 'name'], (gauge) => {
    for (const { kind, name, count } of problems.samples()) gauge.set({ kind, name }, count);
  });
  factory.gauge('leader', '1 while this replica leads.', [], (gauge) =>
    gauge.set(now().leaderEpoch() === undefined ? 0 : 1),
  );
  factory.gauge(
    'breakers_open',
    'Kinds of requests that are paused because the cloud refused them.',
    ['kind'],
    (gauge) => {
      for (const key of now().openBreakers()) gauge.inc({ kind: kindOfBreaker(key) });
    },
  );
  showInformers(factory, clock, now);
  showQueues(factory, now);
}

function showNecs(factory: MetricFactory, clock: Clock, now: () => StateSources): void {
  // All gauges of one scrape are set within one turn of the event loop, so they share one count.
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

/**
 * Returns the first part of a breaker's key as its kind: `subnet/subnet-a` and `node/n1/call/...` have different ones.
 * Whole keys would be too many label values.
 */
function kindOfBreaker(key: string): string {
  return key.split('/')[0] ?? key;
}

/** Counts of all NodeENIConfigs together; keys are label values joined by a tab. */
type NecCounts = {
  /** Subnet and state of the address. */
  readonly addresses: ReadonlyMap<string, number>;
  /** Subnet and state of the ENI; `Draining` takes precedence over the state. */
  readonly enis: ReadonlyMap<string, number>;
  /** Status and reason of the condition Ready; `Unknown` while it does not exist. */
  readonly nodes: ReadonlyMap<string, number>;
  /** Cloud call and phase. */
  readonly intents: ReadonlyMap<string, number>;
  /** Age of the oldest intent of each cloud call, in milliseconds. */
  readonly oldestIntentMs: ReadonlyMap<string, number>;
};

/** The part of an object that is counted. */
type CountedNec = {
  readonly decoded: { readonly spec?: NodeEniConfigSpec; readonly status?: NodeEniConfigStatus } | undefined;
};

const UNREADABLE = 'ObjectInvalid';

/** Counts addresses, ENIs, conditions and intents of nodes; `nowMs` is the wall clock, as the times of intents are. */
function countNecs(necs: Iterable<CountedNec>, nowMs: number): NecCounts {
  const addresses = new Map<string, number>();
  const enis = new Map<string, number>();
  const nodes = new Map<string, number>();
  const intents = new Map<string, number>();
  const oldestIntentMs = new Map<string, number>();
  for (const { decoded } of necs) {
    const status = decoded?.status;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const reason = decoded === undefined ? UNREADABLE : (ready?.reason ?? '');
    count(nodes, `${ready?.status ?? 'Unknown'}\t${reason}`);
    for (const eni of status?.eniInfos ?? []) {
      const subnet = eni.subnetID ?? '';
      count(enis, `${subnet}\t${eni.draining === true ? 'Draining' : eni.state}`);
      for (const address of eni.addresses ?? []) count(addresses, `${subnet}\t${address.state}`);
    }
    for (const { action, phase, recordedAt } of status?.intents ?? []) {
      count(intents, `${action}\t${phase}`);
      const ageMs = Math.max(0, nowMs - Date.parse(recordedAt));
      oldestIntentMs.set(action, Math.max(ageMs, oldestIntentMs.get(action) ?? 0));
    }
  }
  return { addresses, enis, nodes, intents, oldestIntentMs };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
