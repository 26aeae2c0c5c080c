import type { EniPlace } from '../dataplane/find-nic.ts';
import { networkPrefix } from '../dataplane/ip-prefix.ts';
import type { Kernel, NodeKernel } from '../dataplane/kernel.ts';
import { letGo } from '../dataplane/let-go.ts';
import { BRIDGE_IFINDEX } from '../dataplane/numbers.ts';
import { findCiliumChain } from '../inspection/node/find-cilium-chain.ts';
import type { CallFailures } from '../kube/call-failures.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { backgroundOf } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import { KeyedMutex } from '../runtime/keyed-mutex.ts';
import type { Logger } from '../runtime/log.ts';
import { markTakenPod } from './adopt/mark-taken-pod.ts';
import { openTakeOver, type TakeOver, type TakeOverDeps } from './adopt/take-over.ts';
import { noteOccupied, usePodCidrs } from './bridge/accept-pod-cidr.ts';
import { type MasqueradeDeps, updateMasquerade } from './bridge/follow-masquerade.ts';
import { prepareBridge } from './bridge/prepare-bridge.ts';
import { hasCilium } from './config/chained-plugins.ts';
import type { AgentConfig } from './config/options.ts';
import { listRuntimeHandlers } from './cri/runtime-handlers.ts';
import { NO_EVENTS, type NodeEvents } from './events/node-events.ts';
import { filterAttacher, type NewLinks, openNewLinks } from './fast-path/attach-new-links.ts';
import type { FastPathChoice } from './fast-path/choose-fast-path.ts';
import { type FlowtableWriter, openFlowtableWriter } from './fast-path/flowtable-writer.ts';
import { reportFastPath } from './fast-path/open-fast-path.ts';
import { openStrangers } from './host/find-strangers.ts';
import { openPodWiring } from './host/pod-wiring.ts';
import { openSandboxes } from './host/sandboxes.ts';
import type { HostPorts } from './host-ports.ts';
import type { Journal } from './journal/journal-content.ts';
import { leaseKey } from './journal/lease.ts';
import type { NodeRecord } from './journal/node-record.ts';
import { readBridgePorts } from './node/bridge-evidence.ts';
import type { KnownPrimary } from './node/find-primary.ts';
import type { HostView } from './node/node-network.ts';
import { readHostView } from './node/node-probe.ts';
import { readPodInterfaces } from './node/read-pod-interfaces.ts';
import { createMetrics } from './observability/metrics.ts';
import type { KubeUse } from './ops/summary-reply.ts';
import { occupiedNetworks } from './pod-cidr/refuse-pod-cidrs.ts';
import { EventHub } from './recorder/event-hub.ts';
import { FlightRecorder } from './recorder/flight-recorder.ts';
import { openOperationLog } from './recorder/open-operation-log.ts';
import { DEFAULT_BACKOFF_LIMITS } from './repair/decide-backoff.ts';
import { desiredState } from './repair/desired-state.ts';
import { FightDetector } from './repair/fight-detector.ts';
import { ForeignChanges } from './repair/foreign-changes.ts';
import { openHostKernel } from './repair/host-kernel.ts';
import type { OwnWrites } from './repair/own-writes.ts';
import { createPrimaryFinder, type PrimaryFinder, type PrimaryFinderDeps } from './repair/primary-finder.ts';
import type { HostKernel, ReconcileDeps } from './repair/reconcile.ts';
import { NodeState } from './state/node-state.ts';
import type { AgentParts, RandomBytes, Sandboxes, UseCaseDeps } from './state/ports.ts';

/** What the agent gets from its process. */
export type AgentRuntime = {
  /** The machine that it runs on. */
  readonly host: HostPorts;
  /** Ends this agent: a part of it has ended by an error. Never throws. */
  readonly failed: (error: Error) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly randomBytes: RandomBytes;
  readonly release: string;
  /** Returns a number from 0 to below 1, for waits that must not coincide with those of others. */
  readonly random?: () => number;
  /** The API server; required when supply comes from the cluster. */
  readonly kube?: KubeClient;
  /** What the API server answered badly to `kube`, and to who writes `events`. */
  readonly apiFailures?: CallFailures;
  /** Records events for people. */
  readonly events?: NodeEvents;
  /** Returns how the API server was used so far. */
  readonly kubeUse?: () => KubeUse;
};

/** The agent's components, created and not running: what all functions of its start and end share. */
export type AgentComponents = ReturnType<typeof createComponents>;

/** Connects ports and adapters. Opens nothing that needs closing but the runtime's client. */
export function createComponents(
  config: AgentConfig,
  runtime: AgentRuntime,
  opened: {
    readonly journal: Journal;
    readonly kernel: NodeKernel;
    readonly ownWrites: OwnWrites;
    readonly hasNftables: boolean;
    readonly fastPath: FastPathChoice;
  },
) {
  const background = backgroundOf(runtime.failed);
  const { host, clock, log, randomBytes, kube, events = NO_EVENTS, random = () => 0.5 } = runtime;
  const { journal, kernel, ownWrites, hasNftables, fastPath } = opened;
  const state = new NodeState(clock, config.role);
  const metrics = createMetrics();
  host.collectProcessMetrics(metrics.registry);
  state.fastPath = { ...fastPath, sinceMs: clock.monotonicMs() };
  metrics.fastPath.set({ mode: fastPath.mode }, 1);
  const lastPlan = findLastPlan(host);
  reportFastPath(fastPath, lastPlan, events);
  state.registeredWaitMs = config.registeredWaitMs;
  state.isBridgeDefault = config.defaultNetwork === 'tke-bridge';
  state.isBridgeUsed = state.isBridgeDefault;
  usePodCidrs(state, config.podCidrs.map(networkPrefix));
  const readView = (): HostView => readHostView(kernel.rtnetlink);
  const recorded = recordedPrimary(lastPlan, host.bootId);
  const finder = finderOf(config, { state, log, events, recorded, readHostView: readView, hasNftables, fastPath });
  const recorder = new FlightRecorder();
  const hub = new EventHub();
  const operationLog = openOperationLog({ clock, recorder, hub });
  const { namespaces, reservations, view } = host;
  const sandboxes = openSandboxes(namespaces);
  const masqueradeDeps: MasqueradeDeps = {
    ...{ state, kube, clock, log },
    configured: config.grMasquerade,
    readChains: () => host.readMasqChains(),
    changed: (cause) => state.kickPass(cause),
  };
  const takeOver = takeOverOf(config, { clock, log, state, journal, host, kernel, sandboxes });
  const found = host.openFoundState(() => {
    const bridge = finder.current()?.bridge;
    return bridge?.ifindex === BRIDGE_IFINDEX ? bridge.name : undefined;
  });
  const hostKernel = openHostKernel(kernel, found.record);
  state.letGo = letGoOf(kernel, state, log);
  const flowtable = flowtableOf(hostKernel, state, finder, { log });
  const newLinks = newLinksOf(kernel, state, finder, flowtable, { background, clock, log });
  const useCases: UseCaseDeps = {
    ...{ background, clock, randomBytes, log, metrics, state, journal, operationLog },
    mutex: new KeyedMutex(),
    wiring: openPodWiring({
      ...{ kernel, nodeNetwork: finder.current, enis: () => state.plannedEnis, log, sandboxes },
      handlerOf: async (containerId) => (await listRuntimeHandlers(view, clock)).get(containerId),
      nicReturned: (mac, outcome) => {
        if (outcome === 'missing') log.warn('the interface of an exclusive ENI is not here, waiting for it', { mac });
      },
      changed: (pod, render) => operationLog.kernelChanged(leaseKey(pod), render),
    }),
    sandboxes,
    conntrack: host.conntrack,
    strangers: openStrangers({ rtnetlink: kernel.rtnetlink, uplinks: () => uplinksOf(state, finder) }),
    settings: useCaseSettingsOf(config),
    readPendingInput: () => host.readPendingInput(),
    demandChanged: () => demandChanged(state),
    ...{ events, reservations, ciliumChain: () => findChain(config, host), linkMade: newLinks.add },
    prepareBridge: bridgePreparation(state, finder, masqueradeDeps, takeOver),
  };
  return {
    ...runtime,
    ...{ config, events, random, kernel, ownWrites, hasNftables, lastPlan },
    ...useCases,
    ...{ metrics, finder, masqueradeDeps, found, view, takeOver, newLinks, flowtable, recorder, hub },
    /** Reads links, addresses and routes of the host's namespace. */
    readHostView: readView,
    /** Undefined while the fast path is off. */
    programs: kernel.flows,
    /** Reads a link of the host's namespace; undefined when it is gone. */
    readLink: (ifindex: number) => kernel.rtnetlink.link.get({ ifindex }),
    reconcile: {
      ...{ clock, log, metrics, state, journal, operationLog },
      kernel: hostKernel,
      found,
      fights: new FightDetector(DEFAULT_BACKOFF_LIMITS),
      foreignChanges: new ForeignChanges(ownWrites),
      nodeNetwork: finder.current,
      planned: host.planned,
      fightStarted: (request: string) => reportFight(events, request),
    } satisfies ReconcileDeps,
  };
}

function letGoOf({ rtnetlink }: Kernel, state: NodeState, log: Logger): NodeState['letGo'] {
  return (ips) => {
    state.kernelGeneration++;
    try {
      letGo(rtnetlink, ips);
    } catch (error) {
      log.error('routes of addresses that are let go were not deleted, the next repair does it', { ips, error });
    }
    state.kickPass('addresses let go');
  };
}

/** The links by which packets leave the node. */
function uplinksOf({ enis }: NodeState, { primary }: PrimaryFinder): ReadonlySet<number> {
  const found = primary();
  return new Set([
    ...(found === undefined ? [] : [found.ifindex]),
    ...[...enis.values()].map(({ ifindex }) => ifindex),
  ]);
}

function finderOf(
  config: AgentConfig,
  {
    hasNftables,
    fastPath,
    events,
    ...deps
  }: Pick<PrimaryFinderDeps, 'state' | 'log' | 'readHostView' | 'recorded'> & {
    readonly hasNftables: boolean;
    readonly fastPath: FastPathChoice;
    readonly events: NodeEvents;
  },
): PrimaryFinder {
  const { eniMarkMask, rpFilterMode, egress, podCidrs, vpcCidrs, nodePort, serviceCidrs } = config;
  const { state, log } = deps;
  return createPrimaryFinder({
    ...deps,
    configuredName: config.primaryInterface,
    settings: {
      ...{ eniMarkMask, rpFilterMode, egress, podCidrs, vpcCidrs, nodePort, serviceCidrs, nftables: hasNftables },
      ...(fastPath.mode === 'off' ? {} : { fastPath: fastPath.mode }),
    },
    bridge: { name: config.grBridge, wiring: config.grWiring, mtu: config.grMtu },
    observed: (primary) => {
      const ranges = serviceCidrs.length > 0 ? serviceCidrs : state.serviceCidrs;
      const occupied = occupiedNetworks({ supply: state.supply, primary, vpcCidrs, serviceCidrs: ranges });
      noteOccupied({ state, events, log }, occupied);
    },
  });
}

/** What the agent before this one planned for the node, without the ENIs. */
type LastPlan = Pick<NodeRecord, 'bootId' | 'node'> & { readonly enis: readonly EniPlace[] };

/** Returns the last plan; undefined when none is recorded, or by a release that cannot be read. */
function findLastPlan(host: Pick<HostPorts, 'findNodeRecord'>): LastPlan | undefined {
  const record = host.findNodeRecord();
  if (record === undefined) return undefined;
  const enis = record.enis.map(({ eniId, ifindex, ifname }) => ({ eniId, ifindex, ifname }));
  return { bootId: record.bootId, node: record.node, enis };
}

/** Returns the primary interface of the last plan. */
function recordedPrimary(lastPlan: LastPlan | undefined, bootId: string): KnownPrimary | undefined {
  if (lastPlan === undefined) return undefined;
  const { ifindex, addresses } = lastPlan.node.primary;
  return lastPlan.bootId === bootId ? { ifindex, addresses } : { addresses };
}

function newLinksOf(
  kernel: Kernel,
  state: NodeState,
  finder: PrimaryFinder,
  flowtable: FlowtableWriter,
  { background, clock, log }: Pick<AgentParts, 'background' | 'clock' | 'log'>,
): NewLinks {
  const { mode } = state.fastPath;
  return openNewLinks({
    ...{ background, clock, state },
    isWanted: () => mode !== 'off' && finder.current()?.fastPath === mode,
    attacher: mode === 'flowtable' ? flowtable.attacher : filterAttacher({ kernel, state, log }),
  });
}

function flowtableOf(
  kernel: HostKernel,
  state: NodeState,
  { current }: PrimaryFinder,
  { log }: Pick<AgentRuntime, 'log'>,
): FlowtableWriter {
  return openFlowtableWriter({
    ...{ log, kernel, state },
    planned: (links) => {
      const node = current();
      return node && desiredState(state, { ...node, ruleMode: state.ruleMode }, state.plannedEnis, links);
    },
  });
}

/** Finds what chains cilium-cni after our plugin: the flag, or the path of a configuration; undefined without. */
export function findChain(
  { chainedPlugins }: AgentConfig,
  host: Pick<HostPorts, 'readNetworkConfs'>,
): string | undefined {
  return hasCilium(chainedPlugins) ? '--chained-plugins' : findCiliumChain(host.readNetworkConfs())?.path;
}

function demandChanged(state: NodeState): void {
  state.demandChanged.notify();
  // An address whose Pod ended has the rules that all addresses have.
  if (state.role === 'uplinks') state.kickPass('the end of a Pod');
}

/** Reports that another program keeps undoing a change, or replacing a file. */
export function reportFight(events: NodeEvents, request: string): void {
  events.report(
    'Warning',
    'RepairFight',
    `another program keeps undoing: ${request}; the agent repairs it again, later each time`,
  );
}

function takeOverOf(
  { grBridge }: AgentConfig,
  {
    kernel: { rtnetlink },
    host: { reservations, view, namespaces },
    sandboxes,
    ...deps
  }: Pick<TakeOverDeps, 'clock' | 'log' | 'state' | 'journal'> & {
    readonly host: HostPorts;
    readonly kernel: Pick<Kernel, 'rtnetlink'>;
    readonly sandboxes: Pick<Sandboxes, 'isAbsent'>;
  },
): TakeOver {
  return openTakeOver({
    ...{ ...deps, reservations, view },
    readPorts: () => readBridgePorts(rtnetlink, grBridge),
    readInterfaces: (named) => readPodInterfaces(namespaces, named),
    isNetnsAbsent: (path) => sandboxes.isAbsent(path),
    mark: (pod) => markTakenPod({ namespaces, host: rtnetlink }, pod),
    changed: (cause) => deps.state.kickPass(cause),
  });
}

function useCaseSettingsOf(config: AgentConfig): UseCaseDeps['settings'] {
  const { ipCooldownMs, addWaitMs, forceReuseAfterMs, registeredWaitMs, mtu, delegateConfDir, supplySource } = config;
  const isCiliumPool = supplySource === 'cilium-node';
  return {
    isCiliumPool,
    ipCooldownMs,
    addWaitMs,
    registeredWaitMs,
    forceAfterMs: forceReuseAfterMs,
    podMtu: mtu,
    delegateConfDir,
  };
}

function bridgePreparation(
  state: NodeState,
  { current: nodeNetwork }: PrimaryFinder,
  masquerade: MasqueradeDeps,
  takeOver: TakeOver,
): UseCaseDeps['prepareBridge'] {
  const deps = {
    ...{ state, nodeNetwork },
    decideMasquerade: () => updateMasquerade(masquerade, new AbortController().signal),
    takeOver: () => takeOver.run(new AbortController().signal),
    pass: (cause: string) => state.runPass(cause),
  };
  return (cidr, again) => prepareBridge(deps, cidr, again);
}
