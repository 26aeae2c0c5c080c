import type { CallObserver } from '../../cloud/tencent/caller.ts';
import type { ControllerObserver } from '../../kube/controller.ts';
import type { InformerObserver } from '../../kube/informer.ts';
import type { KubeObserver } from '../../kube/kube-observer.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { NodeObserver } from '../node/node-deps.ts';
import {
  createCloudObserver,
  createControllerObserver,
  createInformerObserver,
  createKubeObserver,
  type KubeContact,
  type Pacing,
  showPacing,
} from './call-metrics.ts';
import { createMetricFactory, type MetricFactory, MS_PER_S } from './metric-factory.ts';
import { ProblemBook } from './problem-book.ts';
import { RateMeter } from './rate-meter.ts';
import { NO_STATE, type StateSources, showState } from './state-metrics.ts';
import { type NecChange, WarmWatch } from './warm-watch.ts';

/** What the process uses; only main.ts may ask it. */
export type ProcessUsage = { readonly residentBytes: number; readonly heapBytes: number; readonly cpuSeconds: number };

/** Everything that ipamd counts. Make it before the clients, which take their observers from it. */
export type IpamdMetrics = {
  readonly cloud: CallObserver;
  readonly kube: KubeObserver;
  readonly informer: InformerObserver;
  readonly controller: ControllerObserver;
  readonly node: NodeObserver;
  readonly records: { onWrite(kind: string, result: string): void };
  readonly problems: ProblemBook;
  readonly contact: Readonly<KubeContact>;
  /** Takes a change of a cached NodeENIConfig in. */
  necChanged(change: NecChange): void;
  /** Says where the state is to be looked at from now on. */
  show(sources: StateSources, pacing: Pacing | undefined): void;
  render(): Promise<string>;
  readonly contentType: string;
};

/** Buckets around what the cloud's limits allow: one ENI takes seconds, 5,000 nodes at once some half an hour. */
const WARM_BUCKETS_S = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600];

/**
 * Creates ipamd's metrics in a registry of their own. No default metrics of the library: its gauge of the event loop's
 * lag wakes an idle process a hundred times a second.
 */
export function createIpamdMetrics(
  clock: Clock,
  about: { readonly release: string; readonly usage?: () => ProcessUsage },
): IpamdMetrics {
  const factory = createMetricFactory();
  const meter = new RateMeter();
  const problems = new ProblemBook();
  const contact: KubeContact = { lastOkMs: Number.NEGATIVE_INFINITY };
  let sources = NO_STATE;
  let pacing: Pacing | undefined;
  showState(factory, clock, problems, () => sources);
  showPacing(factory, clock, meter, () => pacing);
  showProcess(factory, about);
  const warm = new WarmWatch();
  const secondsToWarm = factory.histogram(
    'node_warm_seconds',
    'Time from the creation of a NodeENIConfig to its first being ready.',
    WARM_BUCKETS_S,
  );
  return {
    cloud: createCloudObserver(factory, clock, meter),
    kube: createKubeObserver(factory, clock, contact),
    informer: createInformerObserver(factory),
    controller: createControllerObserver(factory),
    node: createNodeObserver(factory, problems),
    records: createRecordsObserver(factory),
    problems,
    contact,
    necChanged: (change) => {
      const tookMs = warm.see(change, clock.nowMs());
      if (tookMs !== undefined) secondsToWarm.observe(tookMs / MS_PER_S);
    },
    show: (newSources, newPacing) => {
      sources = newSources;
      pacing = newPacing;
    },
    render: () => factory.registry.metrics(),
    contentType: factory.registry.contentType,
  };
}

/** Names the reporter of a node's problems. */
export function nodeReporter(node: string): string {
  return `${NODE_REPORTERS}${node}`;
}

/** What the reporters of all nodes begin with: a new leader starts without them. */
export const NODE_REPORTERS = 'node/';

function createNodeObserver(factory: MetricFactory, problems: ProblemBook): NodeObserver {
  const calls = factory.counter('node_calls_total', 'Changes asked of the cloud for nodes, by how they ended.', [
    'action',
    'outcome',
    'code',
  ]);
  const took = factory.histogram('node_call_seconds', 'Time of such a change, its task included.', WARM_BUCKETS_S, [
    'action',
  ]);
  const writes = factory.counter('node_writes_total', 'Guarded writes of NodeENIConfigs.', ['result']);
  const describes = factory.counter('node_describes_total', 'Times that the cloud was asked what it holds for a node.');
  const drift = factory.counter('node_drift_total', 'Differences found between the cloud and a NodeENIConfig.', [
    'kind',
  ]);
  return {
    onCall: ({ action, outcome, tookMs, code }) => {
      calls.inc({ action, outcome, code: code ?? '' });
      took.observe({ action }, tookMs / MS_PER_S);
    },
    onWrite: ({ result }) => writes.inc({ result }),
    onDescribe: () => describes.inc(),
    onDrift: ({ kinds }) => {
      for (const kind of kinds) drift.inc({ kind });
    },
    onProblems: (node, list) =>
      problems.report(
        nodeReporter(node),
        list.map(({ reason }) => ({ kind: reason, name: node })),
      ),
  };
}

function createRecordsObserver(factory: MetricFactory): IpamdMetrics['records'] {
  const writes = factory.counter('record_writes_total', 'Writes of VpcIPs and VpcIPClaims for Pods.', [
    'kind',
    'result',
  ]);
  return { onWrite: (kind, result) => writes.inc({ kind, result }) };
}

function showProcess(
  factory: MetricFactory,
  { release, usage }: { readonly release: string; readonly usage?: () => ProcessUsage },
): void {
  factory.gauge('info', 'Which release this is.', ['release'], (gauge) => gauge.set({ release }, 1));
  if (usage === undefined) return;
  factory.gauge('resident_memory_bytes', 'Memory of the process.', [], (gauge) => gauge.set(usage().residentBytes));
  factory.gauge('heap_used_bytes', "Memory that V8's heap uses.", [], (gauge) => gauge.set(usage().heapBytes));
  factory.gauge('cpu_seconds', 'Processor time that the process used.', [], (gauge) => gauge.set(usage().cpuSeconds));
}
