import { isFlowtableOperation } from '../dataplane/flowtable-operation.ts';
import type { NodeKernel } from '../dataplane/kernel.ts';
import type { MonitorGroup } from '../netlink/monitor.ts';
import { inTime } from '../runtime/clock-timers.ts';
import { messageOf } from '../runtime/error-text.ts';
import { adoptAtStart } from './adopt/adopt.ts';
import { attach } from './attachment/attach.ts';
import { check } from './attachment/check.ts';
import { collectInvalid } from './attachment/collect.ts';
import { detach, recover } from './attachment/detach.ts';
import { holdStrangers } from './attachment/hold-strangers.ts';
import { IgnoredKeys } from './attachment/ignored-keys.ts';
import type { Spool } from './attachment/spool.ts';
import { usePodCidrs } from './bridge/accept-pod-cidr.ts';
import { followMasquerade, updateMasquerade } from './bridge/follow-masquerade.ts';
import { notePreparedBlocks } from './bridge/prepare-bridge.ts';
import type { ClusterConnection } from './cluster.ts';
import { type AgentComponents, type AgentRuntime, createComponents, findChain, reportFight } from './components.ts';
import type { AgentConfig } from './config/options.ts';
import { type FlowEpochs, openFlowEpochs } from './fast-path/flow-epochs.ts';
import { openFastPath } from './fast-path/open-fast-path.ts';
import { followEgressExempt, restoreEgressExempt } from './follow/follow-egress-exempt.ts';
import { followExclusiveRoutes } from './follow/follow-exclusive-routes.ts';
import { followServiceCidrs } from './follow/follow-service-cidrs.ts';
import type { HostPorts } from './host-ports.ts';
import type { Installation, InstallationListener } from './install/installation.ts';
import { acceptSupplyDepsOf, joinCluster, openDevicePlugin } from './join-cluster.ts';
import type { JournalContent } from './journal/journal-content.ts';
import { startMaintenance } from './maintenance.ts';
import { probeNftables } from './node/node-probe.ts';
import { openOps } from './open-ops.ts';
import {
  followReadiness,
  livenessOf,
  notReadyReason,
  type Readiness,
  type ReadinessListener,
} from './ops/readiness.ts';
import { chooseRuleMode } from './repair/choose-rule-mode.ts';
import { followKernel } from './repair/follow-kernel.ts';
import { objectOfEvent } from './repair/object-of.ts';
import { NOTHING_DONE, type ReconcileReport, reconcile } from './repair/reconcile.ts';
import { isRelevant, watchedObjects } from './repair/relevant-event.ts';
import { type RepairLoop, startRepairLoop } from './repair/repair-loop.ts';
import { openSettingsWatch } from './repair/settings-watch.ts';
import type { AgentUseCases } from './server/agent-service.ts';
import type { EniAddressing } from './server/attachment.ts';
import type { NodeState } from './state/node-state.ts';
import { enisStatusOf, NO_ADDS, statusOf } from './state/status.ts';
import { openSupplyAcceptor } from './supply/supply-acceptor.ts';

/** A running agent. */
type RunningAgent = {
  /**
   * Finishes the calls in flight and stops. Kernel state, journal and network configuration stay for the next agent.
   */
  close(): Promise<void>;
};

/** The changes that repair follows. */
const FOLLOWED: readonly MonitorGroup[] = [
  ...(['link', 'ipv4-ifaddr', 'ipv6-ifaddr', 'ipv4-route', 'ipv6-route', 'ipv4-rule', 'ipv6-rule'] as const),
  ...(['ipv4-netconf', 'ipv6-netconf', 'nftables', 'tc'] as const),
];

/** How long a call in flight may take at shutdown; kubelet itself waits 30 s for the end of a Pod. */
const DRAIN_MS = 10_000;

/**
 * Starts the agent, in the one order that is safe: no other agent serves, nor the product's; the journal is opened; Pods without a record
 * are adopted; what was left half done is ended; the kernel is set up; spooled DELs are done; only then it serves, and
 * only when it serves the runtime is sent here.
 * @throws AgentError, JournalError, ConfigError and what the kernel refuses at the start.
 */
export async function startAgent(config: AgentConfig, runtime: AgentRuntime): Promise<RunningAgent> {
  const { host, log, clock } = runtime;
  const startedMs = clock.monotonicMs();
  await host.refuseOthers();
  const shutdown = new AbortController();
  const journal = host.openJournal();
  const node = await openNode(config, runtime);
  const components = createComponents(config, runtime, { journal, ...node });
  const { background, state, random } = components;
  const readiness: Readiness = { notReady: 'the agent is starting' };
  const endpoints = await openEndpoints(components, readiness);

  const cluster = joinCluster(components, readiness);
  restoreState(config, state, journal.load());
  const supply = cluster?.supply ?? host.openSupply({ inForce: () => state.supply });
  // Before anything slow: a restarted kubelet refuses Pods until the devices are registered again.
  const devices = openDevicePlugin(components, cluster);
  await adoptAtStart(components, { supply, signal: shutdown.signal });
  const { noticeCilium } = chooseRuleMode(components);
  restorePlan(components);
  const epochs = followFlows(components);
  const loop = openRepairLoop(components, readiness, epochs);
  const acceptDeps = acceptSupplyDepsOf(components, cluster, () => loop.kick('supply'));
  const acceptor = openSupplyAcceptor(acceptDeps, { background, clock, log, random });
  const unsubscribe = supply.subscribe(acceptor.accept);
  const monitor = followKernel({ background, clock, log, random, loop, open: () => host.openMonitor(FOLLOWED) });
  await recover(components);
  await firstPass(components, loop, shutdown.signal);

  const spool = openSpool(components);
  await spool.drain();
  tryReleaseMemory(components);
  const ops = openOps({ components, readiness, loop, cluster, startedMs });
  const server = await host.serve({ useCases: useCasesOf(components, readiness), ops, signal: shutdown.signal });
  log.info('serving', { socket: config.socket, release: runtime.release, ruleMode: state.ruleMode });
  const installation = install(components, readiness);
  const maintenance = startMaintenance({
    ...{ components, installation, cluster, noticeCilium },
    ...{ drainSpool: spool.drain, ensureSocket: server.ensureSocket },
    signal: shutdown.signal,
  });
  const isReady = (): boolean => statusOf(state, notReadyReason(readiness)) === undefined;
  const onReadiness: ReadinessListener = {
    changed: (isReadyNow) => {
      server.health.setServing(isReadyNow);
      reportReadiness(components, readiness);
      installation.kick();
    },
  };
  const installing = installation.follow({ isReady, hasPlan: () => state.hasPlan() }, shutdown.signal);
  background('keeping the installed files', installing);
  background('following the readiness', followReadiness(state, isReady, shutdown.signal, onReadiness));
  publishInBackground(components, cluster, isReady, shutdown.signal);
  followPlan(components, { loop, cluster, signal: shutdown.signal });

  return {
    close: async () => {
      shutdown.abort('the agent is shutting down');
      await installing;
      // Before calls end: a runtime that reads the folder now sends no more Pods here.
      if (config.removeConfOnExit) host.removeConflist();
      await server.drain(DRAIN_MS);
      await devices?.close();
      unsubscribe();
      acceptor.close();
      supply.close();
      cluster?.close();
      spool.close();
      maintenance.close();
      monitor.close();
      await loop.close();
      endpoints?.close();
      components.view?.close();
      closeKernel(components, epochs);
      journal.close();
      log.info('stopped; Pods go on');
    },
  };
}

/** The kernel with what it can do, and the fast path that is chosen by that. */
async function openNode(config: AgentConfig, { host, clock, log }: AgentRuntime) {
  const { kernel, ownWrites } = host.openKernel();
  const hasNftables = await probeNftables(kernel.nft, clock);
  const found = { hasNftables, role: config.role, ciliumChain: findChain(config, host) };
  const { choice, programs } = await openFastPath(config.fastPath, { kernel, host, log, ...found });
  const opened: NodeKernel = programs === undefined ? kernel : { ...kernel, flows: programs };
  return { kernel: opened, ownWrites, hasNftables, fastPath: choice };
}

/** What is attached to links goes on: the next agent uses it. */
function closeKernel({ kernel, newLinks }: AgentComponents, epochs: FlowEpochs | undefined): void {
  const { flows, rtnetlink } = kernel;
  newLinks.close();
  epochs?.close();
  flows?.close();
  rtnetlink.close();
}

/** Longest wait for the API server before the first pass, for the decision about the masquerade. */
const MASQUERADE_WAIT_MS = 1_000;

async function firstPass(components: AgentComponents, loop: RepairLoop, signal: AbortSignal): Promise<void> {
  const { state, masqueradeDeps, clock, log } = components;
  // Part of the nftables table: without it Pods would run for a while before their packets are masqueraded.
  if (state.isBridgeUsed) {
    await inTime(clock, MASQUERADE_WAIT_MS, (limit) => updateMasquerade(masqueradeDeps, limit), signal);
  }
  try {
    // A pass refuses packets to addresses without a Pod; after it all links of ours are known.
    holdStrangers(components);
    await loop.pass('start');
    holdStrangers(components);
  } catch (error) {
    log.error('the node is not set up yet', { error });
    loop.kick('start');
  }
}

/** Restores the journal; of the blocks that the Node object had last `--pod-cidr` takes precedence. */
function restoreState({ podCidrs, supplySource }: AgentConfig, state: NodeState, content: JournalContent): void {
  const recorded = podCidrs.length === 0 && supplySource === 'cluster' ? content.podCidrs : undefined;
  if (recorded !== undefined) usePodCidrs(state, recorded);
  state.restore(content);
}

/** Restores what the last plan knew from the API server: it holds until the API server answers; and the links of ENIs. */
function restorePlan({ config, host, state, lastPlan }: AgentComponents): void {
  state.serviceCidrs = lastPlan?.node.serviceCidrs ?? [];
  if (lastPlan?.bootId === host.bootId) state.enisBefore = lastPlan.enis;
  if (config.egress === 'node') restoreEgressExempt(state, lastPlan, host.bootId);
}

type Followed = {
  readonly loop: RepairLoop;
  readonly cluster: ClusterConnection | undefined;
  readonly signal: AbortSignal;
};

/** Starts to follow what of the plan is from the API server, and lets Pods with exclusive ENIs follow the plan. */
function followPlan(components: AgentComponents, { loop, cluster, signal }: Followed): void {
  const { background, config, state, finder, kube } = components;
  const hasExclusive = (): boolean => finder.current()?.hasDirect === true;
  const hasPodCidr = (): boolean => state.podCidrs.length > 0;
  const changed = (): void => {
    loop.kick('ranges of Services');
    state.changed.notify();
  };
  background(
    'following the ranges of Services',
    followServiceCidrs(
      { ...components, configured: config.serviceCidrs, kube, hasExclusive, hasPodCidr, changed },
      signal,
    ),
  );
  background(
    'following the routes of Pods with exclusive ENIs',
    followExclusiveRoutes({ ...components, nodeNetwork: finder.current }, signal),
  );
  background('following the masquerade', followMasquerade(components.masqueradeDeps, signal));
  if (cluster?.pods !== undefined && config.egress === 'node')
    background('following egress', followEgressExempt({ ...components, pods: cluster.pods, loop }, signal));
}

function reportReadiness({ state, operationLog }: AgentComponents, readiness: Readiness): void {
  operationLog.report('status', () => {
    const status = statusOf(state, notReadyReason(readiness));
    if (status === undefined) return { text: 'serves ADDs' };
    return {
      text: [status.msg, status.details].filter((line) => line !== '').join(': '),
      isFailure: true,
      code: status.code,
    };
  });
}

function reportHostProblem({ state, events }: AgentComponents, readiness: Readiness, why: string | undefined): void {
  readiness.hostProblem = why;
  if (why !== undefined) events.report('Warning', 'ExecutablesDoNotRun', why);
  state.changed.notify();
}

function reportMissingPlugins({ config, events }: AgentComponents, missing: readonly string[]): void {
  if (missing.length === 0) return;
  const why = `${missing.join(', ')} of --chained-plugins is not in ${config.cniBinDir}: no network configuration is written before it is`;
  events.report('Warning', 'ChainedPluginMissing', why);
}

/** Releases memory. A failure is no reason not to serve. */
function tryReleaseMemory({ host, log }: Pick<AgentRuntime, 'host' | 'log'>): void {
  try {
    host.releaseMemory();
  } catch (error) {
    log.warn('memory not released', { error });
  }
}

/**
 * Opens the installation of executables and network configuration. With the role `uplinks` nothing is installed, and a
 * network configuration of before is removed: runtimes must not send Pods here.
 */
function install(components: AgentComponents, readiness: Readiness): Installation {
  const { config, host, state, metrics, log, events } = components;
  const listener: InstallationListener = {
    loaderProblemChanged: (why) => reportHostProblem(components, readiness, why),
    filesProblemChanged: (why) => {
      readiness.filesProblem = why;
      state.changed.notify();
    },
    missingPluginsChanged: (missing) => reportMissingPlugins(components, missing),
    contested: (paths) => {
      readiness.contestedFiles = paths;
      metrics.fightsStarted.inc({ kind: 'file' });
      reportFight(events, paths.join(', '));
    },
  };
  if (config.role === 'full') return host.openInstallation(listener);
  host.removeConflist();
  const left = statusOf(state, undefined);
  if (state.leases.size > 0)
    log.warn('Pods of before --role=uplinks are left', { why: left?.msg, pods: left?.details });
  return host.openInstallation(undefined);
}

async function openEndpoints({ host, state, metrics, clock }: AgentComponents, readiness: Readiness) {
  const status = () => statusOf(state, notReadyReason(readiness));
  return await host.serveHttp({
    liveness: () => livenessOf(readiness.passStartedMs, clock.monotonicMs()),
    // Of these two STATUS has the first alone: kubelet would take the node away from Pods that can be served.
    readiness: () => status()?.msg ?? readiness.whyApiUnready?.(),
    registry: {
      contentType: metrics.registry.contentType,
      metrics: () => {
        metrics.statusCode.set(status()?.code ?? 0);
        return metrics.registry.metrics();
      },
    },
  });
}

/** Ends learned flows when others change what they depend on; undefined while the fast path is off. */
function followFlows({
  background,
  programs,
  state,
  flowtable,
  metrics,
  clock,
  log,
}: AgentComponents): FlowEpochs | undefined {
  const { mode } = state.fastPath;
  if (mode === 'off') return undefined;
  return openFlowEpochs({ background, clock }, mode, async (cause) => {
    try {
      programs?.forgetFlows();
      if (mode === 'flowtable') await flowtable.endFlows();
      metrics.flowsForgotten.inc({ kind: cause });
    } catch (error) {
      log.error('flows of the fast path cannot be ended at once', { cause, error });
      // With programs it is over after a second by itself.
      if (mode === 'flowtable') throw error;
    }
  });
}

function openRepairLoop(components: AgentComponents, readiness: Readiness, epochs: FlowEpochs | undefined): RepairLoop {
  const { config, host, state, finder, metrics, clock } = components;
  const run = async (cause: string): Promise<ReconcileReport> => {
    readiness.passStartedMs = clock.monotonicMs();
    const ended = (error?: string): void => {
      const endedMs = clock.monotonicMs();
      readiness.lastPass = { endedMs, cause, ...(error === undefined ? {} : { error }) };
    };
    try {
      finder.observe();
      // Before the first supply it is not known what this node is for: a wrong file or flag changes nothing.
      const report = state.hasPlan() ? await reconcile(components.reconcile, cause) : NOTHING_DONE;
      if (report.done.some((operation) => !isFlowtableOperation(operation))) epochs?.forget('repair');
      readiness.notReady = finder.primary() === undefined ? 'the node has no primary interface yet' : undefined;
      notePreparedBlocks(state, finder.current(), report);
      if (readiness.notReady === undefined) recordRuleMode(components, report);
      ended();
      state.changed.notify();
      return report;
    } catch (error) {
      const why = messageOf(error);
      readiness.notReady = `the node cannot be set up: ${why}`;
      ended(why);
      state.changed.notify();
      throw error;
    } finally {
      readiness.passStartedMs = undefined;
    }
  };
  // Events come in bursts, and finding the relevant objects takes a pass over every lease: one result serves a turn of
  // the event loop.
  const watched = oncePerTurn(host, () => watchedObjects(state, finder.primary(), finder.current()));
  const { fights, foreignChanges, nodeNetwork } = components.reconcile;
  const settings = openSettingsWatch({
    ...{ state, nodeNetwork, fights, sysctl: components.kernel.sysctl, monotonicMs: clock.monotonicMs },
  });
  const loop = startRepairLoop({
    ...{ background: components.background, clock },
    reconcile: run,
    note: (event) => foreignChanges.note(event, clock.monotonicMs()),
    noteForeign: (event) => {
      // Links of others come and go with their Pods.
      if (event.kind !== 'link' || watched().ifindexes.has(event.message.ifindex)) epochs?.note(event);
    },
    isOwn: components.ownWrites.isOwn,
    isRelevant: (event) => {
      // A pass follows at the end of the wait.
      const object = objectOfEvent(event);
      if (object !== undefined && fights.isHeld(object, clock.monotonicMs())) return false;
      if (!isRelevant(event, watched(), components.readLink)) return false;
      return event.kind !== 'netconf' || settings.differsAt(event.message.ifindex);
    },
    settingsDiffer: settings.differsNext,
    overrun: () => metrics.overruns.inc(),
    invalidateNft: components.reconcile.kernel.invalidateNft,
    invalidateFilters: components.reconcile.kernel.invalidateFilters,
    forgetFilters: components.reconcile.kernel.forgetFilters,
    log: components.log,
    intervalMs: config.repairIntervalMs,
  });
  state.runPass = loop.pass;
  state.kickPass = loop.kick;
  state.runExclusive = loop.runExclusive;
  return loop;
}

/** Publishes demand, and which resources the node serves: one that serves may have none but addresses of the bridge. */
function publishInBackground(
  { background, state }: Pick<AgentComponents, 'background' | 'state'>,
  cluster: ClusterConnection | undefined,
  isReady: () => boolean,
  signal: AbortSignal,
): void {
  if (cluster === undefined) return;
  const servesEnis = (): boolean => isReady() && enisStatusOf(state) === undefined;
  background('writing to the API server', cluster.publish(servesEnis, signal));
}

function oncePerTurn<T extends object>(host: Pick<HostPorts, 'afterTurn'>, compute: () => T): () => T {
  let cached: T | undefined;
  return () => {
    if (cached === undefined) {
      host.afterTurn(() => {
        cached = undefined;
      });
      cached = compute();
    }
    return cached;
  };
}

function recordRuleMode({ state, metrics, journal, log }: AgentComponents, report: ReconcileReport): void {
  const before = journal.load().ruleMode;
  if (before === state.ruleMode || report.failed.length > 0 || report.paused.length > 0) return;
  journal.putRuleMode(state.ruleMode);
  if (before === undefined) return;
  metrics.migrations.inc();
  log.info('rule mode changed', { from: before, to: state.ruleMode });
}

/** Does the DELs that no agent took. */
function openSpool(components: AgentComponents): Spool {
  const { host, metrics } = components;
  return host.watchSpool({
    pending: (count) => metrics.spoolPending.set(count),
    release: async ({ containerId, ifName, writtenAtBootMs }) => {
      const failure = await detach(components, { containerId, ifName }, writtenAtBootMs);
      if (failure !== undefined) throw new Error(failure.msg);
    },
  });
}

function useCasesOf(components: AgentComponents, readiness: Readiness): AgentUseCases {
  const { state } = components;
  const isFull = state.role === 'full';
  const ignored = new IgnoredKeys(components.log);
  return {
    ignoredKeys: (network, keys) => ignored.report(network, keys),
    // Pods of before the role `uplinks` are still ended and collected.
    attach: (command, signal) =>
      isFull ? attach(components, command, signal) : Promise.resolve({ kind: 'failed', failure: NO_ADDS }),
    detach: (target) => detach(components, target),
    check: (target) => check(components, target),
    status: () => (isFull ? statusOf(state, notReadyReason(readiness)) : NO_ADDS),
    collectInvalid: (network, valid) => collectInvalid(components, network, valid),
    addressing: ({ eniId }) => addressingOf(state, eniId),
  };
}

function addressingOf({ supply, enis }: NodeState, eniId: string): readonly EniAddressing[] {
  const { primary = [], mac = '' } = supply?.enis.find((eni) => eni.eniId === eniId) ?? {};
  const name = enis.get(eniId)?.ifname;
  return name === undefined ? primary : primary.map((one) => ({ ...one, link: { name, mac } }));
}
