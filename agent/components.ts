import { join } from 'node:path';
import type { Kernel } from '../dataplane/kernel.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Clock } from '../runtime/clock.ts';
import { KeyedMutex } from '../runtime/keyed-mutex.ts';
import type { Logger } from '../runtime/log.ts';
import { NO_EVENTS, type NodeEvents } from './cluster/node-events.ts';
import type { AgentConfig } from './config/options.ts';
import { openCriView } from './cri/cri-client.ts';
import type { SandboxView } from './cri/sandbox-view.ts';
import { readBootId } from './journal/boot-id.ts';
import type { Journal } from './journal/journal-content.ts';
import { openConntrack } from './node/conntrack.ts';
import { FOUND_STATE_FILE, openFoundState } from './node/found-state.ts';
import { openHostKernel } from './node/host-kernel.ts';
import { readHostView } from './node/node-probe.ts';
import { createNodeRecordWriter } from './node/node-record-writer.ts';
import { openPodWiring } from './node/pod-wiring.ts';
import { openSandboxes } from './node/sandboxes.ts';
import type { HostView } from './node-network.ts';
import { keyOf, NodeState } from './node-state.ts';
import { createMetrics, type MetricsRegistry } from './observability/metrics.ts';
import { EventHub } from './ops/event-hub.ts';
import { FlightRecorder } from './ops/flight-recorder.ts';
import { openOperationLog } from './ops/open-operation-log.ts';
import type { OperationLog } from './ops/operation-log.ts';
import type { KubeUse } from './ops/summary-reply.ts';
import type { RandomBytes, UseCaseDeps } from './ports.ts';
import { createPrimaryFinder, type PrimaryFinder } from './primary-finder.ts';
import { DEFAULT_BACKOFF_LIMITS } from './repair/decide-backoff.ts';
import { FightDetector } from './repair/fight-detector.ts';
import { ForeignChanges } from './repair/foreign-changes.ts';
import type { OwnWrites } from './repair/own-writes.ts';
import type { ReconcileDeps } from './repair/reconcile.ts';
import { readPendingInput } from './server/pending-input.ts';

/** What the agent gets from its process. */
export type AgentRuntime = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly randomBytes: RandomBytes;
  readonly release: string;
  /** Returns a number from 0 to below 1, for waits that must not coincide with those of others. */
  readonly random?: () => number;
  /** The API server; required when supply comes from the cluster. */
  readonly kube?: KubeClient;
  /** Records events for people. */
  readonly events?: NodeEvents;
  /** Returns how the API server was used so far. */
  readonly kubeUse?: () => KubeUse;
};

/** The agent's components, created and not running. */
export type AgentComponents = {
  readonly state: NodeState;
  readonly metrics: MetricsRegistry;
  readonly finder: PrimaryFinder;
  /** Reads links, addresses and routes of the host's namespace. */
  readonly readHostView: () => HostView;
  readonly useCases: UseCaseDeps;
  readonly reconcile: ReconcileDeps;
  readonly ownWrites: OwnWrites;
  readonly sysctl: Kernel['sysctl'];
  /** Holds the last operations of Pods. */
  readonly recorder: FlightRecorder;
  /** Distributes events to those who watch. */
  readonly hub: EventHub;
  /** Writes to both. */
  readonly operationLog: OperationLog;
  /** Undefined when no runtime is configured. */
  readonly view: SandboxView | undefined;
};

/** Connects ports and adapters. Opens nothing that needs closing but the runtime's client. */
export function createComponents(
  config: AgentConfig,
  { clock, log, randomBytes, release, events = NO_EVENTS }: AgentRuntime,
  {
    journal,
    kernel,
    ownWrites,
    hasNftables,
  }: {
    readonly journal: Journal;
    readonly kernel: Kernel;
    readonly ownWrites: OwnWrites;
    readonly hasNftables: boolean;
  },
): AgentComponents {
  const state = new NodeState(clock);
  const metrics = createMetrics({ processMetrics: true });
  const { eniMarkMask, rpFilterMode, egress, podCidrs, vpcCidrs, nodePort, serviceCidrs } = config;
  const readView = (): HostView => readHostView(kernel.rtnetlink);
  const finder = createPrimaryFinder({
    state,
    log,
    readHostView: readView,
    configuredName: config.primaryInterface,
    settings: { eniMarkMask, rpFilterMode, egress, podCidrs, vpcCidrs, nodePort, serviceCidrs, nftables: hasNftables },
  });
  const recorder = new FlightRecorder();
  const hub = new EventHub();
  const operationLog = openOperationLog({ clock, recorder, hub });
  const sandboxes = openSandboxes(config.hostRoot);
  const useCases: UseCaseDeps = {
    ...{ clock, randomBytes, log, metrics, state, journal, operationLog },
    mutex: new KeyedMutex(),
    wiring: openPodWiring({
      ...{ kernel, nodeNetwork: finder.current, enis: () => state.plannedEnis, log, sandboxes },
      nicReturned: (mac, outcome) => {
        if (outcome === 'missing') log.warn('the interface of an exclusive ENI is not here, waiting for it', { mac });
      },
      changed: (pod, render) => operationLog.kernelChanged(keyOf(pod), render),
    }),
    sandboxes,
    conntrack: openConntrack(log),
    settings: {
      ipCooldownMs: config.ipCooldownMs,
      addWaitMs: config.addWaitMs,
      forceAfterMs: config.forceReuseAfterMs,
      podMtu: config.mtu,
    },
    readPendingInput,
    demandChanged: () => state.demandChanged.notify(),
  };
  const bootId = readBootId();
  const found = openFoundState(join(config.stateDir, FOUND_STATE_FILE), bootId, log);
  return {
    ...{ state, metrics, finder, useCases, recorder, hub, operationLog, ownWrites },
    readHostView: readView,
    sysctl: kernel.sysctl,
    reconcile: {
      ...{ clock, log, metrics, state, journal, operationLog },
      kernel: openHostKernel(kernel, found.record),
      fights: new FightDetector(DEFAULT_BACKOFF_LIMITS),
      foreignChanges: new ForeignChanges(ownWrites),
      nodeNetwork: finder.current,
      planned: createNodeRecordWriter({
        ...{ stateDir: config.stateDir, log, bootId, agentRelease: release, nodeName: config.nodeName },
      }),
      fightStarted: (request) => {
        events.report(
          'Warning',
          'RepairFight',
          `another program keeps undoing: ${request}; the agent repairs it again, later each time`,
        );
      },
    },
    view: config.criSockets.length === 0 ? undefined : openCriView(config.criSockets),
  };
}
