import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from '../crd/names.ts';
import { CallFailures, describeCallFailure, describeRefusal } from '../kube/call-failures.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { CILIUM_NODES, NODE_ENI_CONFIGS } from '../kube/resource-types.ts';
import { type Fault, renderFaults } from '../runtime/decode.ts';
import { invariant } from '../runtime/invariant.ts';
import { acceptPodCidrs } from './bridge/accept-pod-cidr.ts';
import type { AgentRuntime } from './components.ts';
import type { AgentConfig } from './config/options.ts';
import type { NodeEvents } from './events/node-events.ts';
import { followNode } from './follow/follow-node.ts';
import { keepRefusedCondition } from './follow/refused-condition.ts';
import type { WarmTargets } from './journal/supply.ts';
import { countExclusiveWaiting, countWaiting } from './pods/count-waiting.ts';
import type { KubePod } from './pods/kube-pod.ts';
import { openNetworkModeLookup } from './pods/network-mode-lookup.ts';
import { openPodFindings, shownPodsOf } from './pods/pod-findings.ts';
import { openPodView, type PodView } from './pods/pod-view.ts';
import { openRecordedPods } from './pods/recorded-pods.ts';
import { openStaticIpLookup } from './pods/static-ip-lookup.ts';
import type { OutsideDemand } from './pool/demand.ts';
import type { Occurrence } from './recorder/operation-log.ts';
import type { NodeState } from './state/node-state.ts';
import type { AgentParts } from './state/ports.ts';
import {
  AGENT_ROLE,
  type AgentFailure,
  listAgentFailures,
  trackAgentCalls,
  whyApiUnready,
} from './supply/api-failures.ts';
import { type CiliumNodeSource, openCiliumNodeSource } from './supply/cilium-node-source.ts';
import { NODE_OWNERS } from './supply/cilium-supply.ts';
import { decideReadiness } from './supply/decide-readiness.ts';
import { type NecSource, openNecSource } from './supply/nec-source.ts';
import type { ObservedNec } from './supply/publication.ts';
import { publishCiliumStatus } from './supply/publish-cilium-status.ts';
import { POLL_MS, publishWhenChanged } from './supply/publish-when-changed.ts';
import { type ExclusivePublishing, publishDemand } from './supply/publisher.ts';
import { DEFAULT_WARM } from './supply/supply-of-config.ts';

/** Dependencies of the cluster connection. */
type ClusterDeps = AgentParts &
  Pick<AgentRuntime, 'randomBytes' | 'apiFailures'> & {
    readonly config: AgentConfig;
    readonly random: () => number;
    readonly kube: KubeClient;
  };

/**
 * The agent's connection to the cluster: supply, Pods, events, publications. It never waits for the API server, and the
 * rest of the agent never waits for it.
 */
export type ClusterConnection = {
  readonly supply: Omit<NecSource, 'publish' | 'asked'>;
  /** Undefined where another program wires the Pods. */
  readonly pods: PodView | undefined;
  readonly events: NodeEvents;
  /** Name of the journal, as in the annotation `agent-life`. */
  readonly life: string;
  /** Warm targets of the newest object, else of the supply in force, else the default. */
  warm(): WarmTargets;
  /** Demand that the pool does not know of. */
  outside(): OutsideDemand;
  /** Publishes demand and offers until aborted. `isReady` tells whether the node serves ADDs. Never rejects. */
  publish(isReady: () => boolean, signal: AbortSignal): Promise<void>;
  /** Milliseconds since the API server last answered, monotonic; infinite when it never did. */
  silenceMs(): number;
  /** What the API server refuses now, or has not answered well for long; empty when all is well. */
  apiFailures(): readonly AgentFailure[];
  /** Why `/readyz` is not ready as far as the API server is concerned. */
  whyUnready(): string | undefined;
  /** Number of addresses that the NodeENIConfig says are wanted, undefined before the first write; absent where the agent writes none. */
  asked?(): number | undefined;
  close(): void;
};

const LIFE_BYTES = 8;
/** In use until an object or a supply sets targets. */
const DEFAULT_TARGETS: WarmTargets = { min: DEFAULT_WARM.addresses, max: DEFAULT_WARM.addresses };

/** Follows the node's NodeENIConfig and Pods until `close`. */
export function openCluster(deps: ClusterDeps): ClusterConnection {
  const { background, config, clock, log, random, events, state, metrics } = deps;
  const { apiFailures = new CallFailures(clock) } = deps;
  const kube = deps.apiFailures === undefined ? trackAgentCalls(deps.kube, apiFailures) : deps.kube;
  reportRefusals(apiFailures, deps);
  const follow = { background, client: kube, nodeName: config.nodeName, clock, log, random };
  const onFaults = (kind: 'annotation' | 'object', faults: readonly Fault[]): void => {
    metrics.objectFaults.set({ kind }, faults.length);
    if (faults.length === 0) return;
    events.report('Warning', kind === 'annotation' ? 'AnnotationInvalid' : 'ObjectInvalid', textOf(faults));
  };
  const cilium = config.supplySource === 'cilium-node' ? openCilium(deps, follow, onFaults) : undefined;
  const nothingDue = (): void => apiFailures.notDue(`update ${NODE_ENI_CONFIGS.plural}`);
  const nec = cilium !== undefined ? undefined : openNec(state, follow, { onFaults, nothingDue });
  const supply = cilium ?? nec;
  invariant(supply !== undefined, 'there is one source of supply');
  const followed = config.role === 'uplinks' ? undefined : followPods(deps, kube, follow);
  const hasBlocks = config.podCidrs.length === 0 && config.role !== 'uplinks' && cilium === undefined;
  const listFailures = (): readonly AgentFailure[] => listAgentFailures(apiFailures, hasBlocks);
  // A refusal comes first: only a person can end it, and ipamd does not know what it could not be asked for.
  state.supplyWaitsFor = () => {
    const failure = listFailures().find(({ isNeededByPods }) => isNeededByPods);
    if (failure === undefined) return supply.waitsFor() ?? supply.notReadyReason();
    return describeCallFailure(failure, clock.monotonicMs(), AGENT_ROLE);
  };
  const changed = (cause: string): void => state.kickPass(cause);
  const refused = keepRefusedCondition({
    ...{ background, kube, nodeName: config.nodeName, clock, log, failures: listFailures },
    isNodeUnread: () => apiFailures.last('list nodes') !== undefined,
  });
  const endNode = followNode({
    ...follow,
    accept: ({ podCidrs, internalIps, maxPods, refused: shown }) => {
      acceptMaxPods(state, maxPods);
      refused.accept(shown);
      acceptNodeIps(state, internalIps, changed);
      if (hasBlocks) acceptPodCidrs({ ...deps, changed }, podCidrs);
    },
  });
  const life = lifeOf(deps);
  const warm = (): WarmTargets => supply.latest()?.warm ?? state.supply?.warm ?? DEFAULT_TARGETS;
  const outside = (): OutsideDemand => ({
    waiting: countWaiting(podsOfEnis(followed?.view, config), state.leases.values(), state.addsWaiting.values()),
    floor: warm().floor ?? 0,
    maxPods: state.maxPods,
    nowMs: clock.bootMs(),
  });
  const exclusive: ExclusivePublishing = {
    pool: state.exclusivePool,
    warm: () => (supply.latest() ?? state.supply)?.direct?.warm,
    waiting: () =>
      countExclusiveWaiting(followed?.view.pods() ?? [], state.leases.values(), state.exclusiveAddsWaiting.values()),
  };
  return {
    ...{ supply, pods: followed?.view, events, life, warm, outside },
    publish: async (isReady, signal) => {
      if (cilium !== undefined) return await publishUsed(deps, kube, apiFailures, cilium, signal);
      if (nec === undefined) return;
      if (config.role === 'uplinks') return await publishReadiness(deps, { supply: nec, life, isReady }, signal);
      await publish(deps, { supply: nec, life, isReady, warm, outside, exclusive }, signal);
    },
    silenceMs: () => clock.monotonicMs() - supply.lastContactMs,
    apiFailures: listFailures,
    whyUnready: () => {
      const isHeard = Number.isFinite(supply.lastContactMs);
      const listCall = `list ${(cilium === undefined ? NODE_ENI_CONFIGS : CILIUM_NODES).plural}`;
      const last = apiFailures.last.bind(apiFailures);
      return whyApiUnready({ isHeard, listCall, failures: listFailures(), last }, clock.monotonicMs());
    },
    ...(nec === undefined || config.role === 'uplinks' ? {} : { asked: () => nec.asked() }),
    close: () => {
      endNode();
      refused.close();
      followed?.close();
      supply.close();
    },
  };
}

type Follow = Parameters<typeof openPodView>[0];
type OnFaults = (kind: 'annotation' | 'object', faults: readonly Fault[]) => void;

/** Takes the Node's addresses, which tell the primary interface. A Node without any, as before its first status, tells nothing. */
function acceptNodeIps(state: NodeState, ips: readonly string[], changed: (cause: string) => void): void {
  if (ips.length === 0 || ips.join() === state.nodeIps.join()) return;
  state.nodeIps = ips;
  changed('addresses of the Node');
}

/** Reports each right and token that is missing, once, and when that is over: in the log, an event and the metric. */
function reportRefusals(
  apiFailures: CallFailures,
  { metrics, log, events }: Pick<ClusterDeps, 'metrics' | 'log' | 'events'>,
): void {
  apiFailures.subscribe((failure, isOver) => {
    const { call: right } = failure;
    if (isOver) metrics.missingRights.remove({ right });
    else metrics.missingRights.set({ right }, 1);
    if (isOver) return log.info('a right is not missing any more, or not needed', { right });
    const detail = describeRefusal(failure, AGENT_ROLE);
    log.error('a right is missing', { right, detail });
    return events.report('Warning', 'Forbidden', detail);
  });
}

function acceptMaxPods(state: NodeState, maxPods: number | undefined): void {
  if (maxPods === undefined || maxPods === state.maxPods) return;
  state.maxPods = maxPods;
  state.demandChanged.notify();
}

function openNec(
  state: NodeState,
  follow: Follow,
  listener: { readonly onFaults: OnFaults; readonly nothingDue: () => void },
): NecSource {
  const isInUse = (ip: string): boolean =>
    state.pool.state.addresses.get(ip)?.leaseKey !== undefined || isOfLeasedEni(state, ip);
  return openNecSource({ ...follow, ...listener, isInUse, inForce: () => state.supply });
}

function openCilium({ config, state }: ClusterDeps, follow: Follow, onFaults: OnFaults): CiliumNodeSource {
  return openCiliumNodeSource({
    ...follow,
    reservedOwners: config.reserveNodeAddresses ? NODE_OWNERS : [],
    inForce: () => state.supply,
    isFree: (ip) => {
      const known = state.pool.state.addresses.get(ip);
      return known === undefined || known.state === 'free';
    },
    onFaults: (faults) => onFaults('object', faults),
  });
}

async function publishUsed(
  { config, clock, log, state, journal, metrics, operationLog }: ClusterDeps,
  client: KubeClient,
  apiFailures: CallFailures,
  source: CiliumNodeSource,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, ciliumUpdateMs: updateEveryMs } = config;
  const published = (outcome: 'changed' | 'failed'): void => {
    metrics.publications.inc({ outcome });
    const isFailure = outcome === 'failed';
    const text = isFailure ? 'status not written, will be tried again' : 'status of the CiliumNode written';
    operationLog.report('publish', () => (isFailure ? { text, isFailure } : { text }));
  };
  const nothingDue = (): void => apiFailures.notDue(`patch ${CILIUM_NODES.plural}/status`);
  const observe = { published, nothingDue };
  await publishCiliumStatus(
    { client, nodeName, clock, log, state, journal, source, updateEveryMs, ...observe },
    signal,
  );
}

/** Follows the Pods of the node, and looks them up for ADDs, until `close`. */
function followPods(
  { journal, metrics, state }: ClusterDeps,
  kube: KubeClient,
  follow: Parameters<typeof openPodView>[0],
): { readonly view: PodView; close(): void } {
  const { background, clock, log } = follow;
  const view = openPodView(follow);
  const unsubscribe = view.subscribe(() => {
    state.acceptShown(shownPodsOf(view.pods()));
    state.demandChanged.notify();
  });
  const findings = openPodFindings({ background, kube, view, clock, proven: (podUid) => state.acceptFailed(podUid) });
  state.podFindings = findings;
  const recorded = openRecordedPods({ background, journal, view, clock, log, metrics });
  state.staticIpLookup = openStaticIpLookup(kube, view, recorded, clock);
  state.networkModeLookup = openNetworkModeLookup(kube, view, recorded, clock);
  return {
    view,
    close: () => {
      unsubscribe();
      findings.close();
      recorded.close();
      view.close();
    },
  };
}

/** The Pods that may need an address of an ENI: with the bridge as default only those that name another network. */
function* podsOfEnis(view: PodView | undefined, { defaultNetwork }: AgentConfig): Iterable<KubePod> {
  for (const pod of view?.pods() ?? []) if (defaultNetwork !== 'tke-bridge' || pod.network === 'route-eni') yield pod;
}

type Publishing = {
  readonly supply: NecSource;
  readonly life: string;
  readonly isReady: () => boolean;
  readonly warm: () => WarmTargets;
  readonly outside: () => OutsideDemand;
  readonly exclusive: ExclusivePublishing;
};

async function publish(
  { config, clock, log, random, state, journal, metrics, operationLog }: ClusterDeps,
  { supply, life, isReady, warm, outside, exclusive }: Publishing,
  signal: AbortSignal,
): Promise<void> {
  const ready = createReadyResources(clock.monotonicMs());
  await publishDemand(
    {
      ...{ clock, log, random, journal, life, warm, outside, exclusive },
      nec: supply,
      pool: state.pool,
      demandChanged: state.demandChanged,
      readyResources: (observed) => ready.of(isReady(), observed, life, clock.monotonicMs(), resourcesOf(state)),
      isQuickRelease: config.enableQuickRelease,
      releaseEveryMs: config.releaseIntervalMs,
      withdrawn: (ips) => state.letGo(ips),
      restored: () => {
        state.changed.notify();
        state.kickPass('offers taken back');
      },
      published: (outcome) =>
        operationLog.report('publish', () =>
          publicationOccurrence(outcome, state.pool.demand(warm(), outside()).desired),
        ),
      metrics,
    },
    signal,
  );
}

/**
 * Publishes that the node is ready, and nothing of demand, until aborted. A node with Pods of before the role is not:
 * who gives addresses to the others does not know theirs.
 */
async function publishReadiness(
  { clock, log, random, state, metrics, operationLog }: ClusterDeps,
  { supply, life, isReady }: Pick<Publishing, 'supply' | 'life' | 'isReady'>,
  signal: AbortSignal,
): Promise<void> {
  const ready = createReadyResources(clock.monotonicMs());
  const resources = (observed: ObservedNec): readonly string[] =>
    state.leases.size > 0 ? [] : ready.of(isReady(), observed, life, clock.monotonicMs());
  const publishOnce = async (until: AbortSignal): Promise<void> => {
    const outcome = await supply.publish(
      (nec) => decideReadiness({ nec, life, readyResources: resources(nec), epochInForce: state.pool.state.epoch }),
      until,
    );
    if (outcome === 'nothing') return;
    metrics.publications.inc({ outcome });
    operationLog.report('publish', () => ({ text: 'readiness published' }));
  };
  await publishWhenChanged(
    {
      ...{ clock, log, random },
      demandChanged: state.demandChanged,
      publisher: { nextPassMs: () => POLL_MS, publish: publishOnce },
      failed: () => {
        metrics.publications.inc({ outcome: 'failed' });
        operationLog.report('publish', () => ({
          text: 'readiness not published, will be tried again',
          isFailure: true,
        }));
      },
    },
    signal,
  );
}

function resourcesOf({ supply }: NodeState): readonly string[] {
  return supply?.direct === undefined ? [ENI_IP_RESOURCE] : [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE];
}

function isOfLeasedEni({ exclusivePool }: NodeState, ip: string): boolean {
  return [...exclusivePool.state.values()].some(
    ({ use, primary }) => use === 'leased' && primary.some((one) => one.ip === ip),
  );
}

function publicationOccurrence(outcome: 'changed' | 'unchanged' | 'failed', desired: number): Occurrence {
  if (outcome === 'failed') return { text: 'demand not published, will be tried again', isFailure: true };
  return { text: `demand published: ${desired} addresses${outcome === 'unchanged' ? ', nothing changed' : ''}` };
}

/**
 * Returns the name of the journal; gives a new journal a random one. So a journal that replaced another has another
 * name, and offers of its predecessor are not taken for its own.
 */
function lifeOf({ journal, randomBytes, log, metrics }: ClusterDeps): string {
  const known = journal.load().life;
  if (known !== undefined) return known;
  const life = Buffer.from(randomBytes(LIFE_BYTES)).toString('hex');
  try {
    journal.putLife(life);
  } catch (error) {
    // Without its record the next start makes another name, which costs one write.
    metrics.journalErrors.inc();
    log.error('the name of the journal was not written', { error });
  }
  return life;
}

const SHOWN_FAULTS = 5;

function textOf(faults: readonly Fault[]): string {
  return renderFaults(faults, faults.length, SHOWN_FAULTS);
}

/** Decides which extended resources the node reports as served. */
type ReadyResources = {
  /**
   * Returns the resources to report.
   * @param observed The object, with what it reports now.
   * @param life Name of this agent's journal.
   * @param served Resources that the node serves when it is ready.
   */
  of(
    isReady: boolean,
    observed: ObservedNec,
    life: string,
    nowMs: number,
    served?: readonly string[],
  ): readonly string[];
};

/**
 * How long a node that is not ready goes on reporting its resources. A repair pass that fails once, and a restart, take
 * less; a taint that comes and goes would move Pods elsewhere.
 */
const UNREADY_GRACE_MS = 30_000;

/**
 * Tracks whether the node serves. A ready node reports its resources at once. One that is not ready leaves what the
 * object says for `UNREADY_GRACE_MS`, unless an agent with another journal wrote that. Times are monotonic.
 */
function createReadyResources(startedMs: number): ReadyResources {
  let unreadySinceMs: number | undefined = startedMs;
  return {
    of: (isReady, observed, life, nowMs, served = [ENI_IP_RESOURCE]) => {
      unreadySinceMs = isReady ? undefined : (unreadySinceMs ?? nowMs);
      if (unreadySinceMs === undefined) return served;
      const isBrief = nowMs - unreadySinceMs < UNREADY_GRACE_MS;
      return isBrief && observed.spec.life === life ? observed.spec.readyResources : [];
    },
  };
}
