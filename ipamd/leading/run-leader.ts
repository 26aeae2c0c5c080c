import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { type ReconcileResult, runController } from '../../kube/controller.ts';
import type { Term } from '../../kube/election/term.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import { RouteCache } from '../../pod-routes/route-cache.ts';
import { RegisteredIps } from '../cache/registered-ips.ts';
import { StaticEniIndex } from '../direct/static-eni-index.ts';
import { AddressLookup } from '../node-lifecycle/address-lookup.ts';
import { type Claimant, findRival } from '../node-lifecycle/find-rival.ts';
import { openInstanceCache } from '../node-lifecycle/instance-cache.ts';
import { createNodeController } from '../node-lifecycle/node-controller.ts';
import { createNodeFacts, type NodeFactsDeps } from '../node-lifecycle/node-facts.ts';
import { Renewals } from '../node-lifecycle/renewals.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP } from '../static/build-claim-view.ts';
import { findMoved, type MarkedHolders } from '../static/find-moved.ts';
import { openSubnets } from '../subnets/open-subnets.ts';
import { subnetKey } from '../supply/call-keys.ts';
import type { NodeDeps } from '../supply/node-deps.ts';
import { NodeMemories } from '../supply/node-memory.ts';
import { type FormerWriteDeps, readFormerWrites } from '../supply/read-former-writes.ts';
import { reconcileNode } from '../supply/reconcile-node.ts';
import { enqueueNodes } from './enqueue-nodes.ts';
import { findClusterVpc } from './find-cluster-vpc.ts';
import { CiliumFollower } from './follow-cilium-nodes.ts';
import { hasEniSubnets } from './has-eni-subnets.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';
import { BY_INSTANCE, type Informers } from './open-informers.ts';
import { closeQueues, makeQueues } from './queues.ts';
import { runAudit } from './run-audit.ts';
import { runCiliumNodes } from './run-cilium-nodes.ts';
import { runClusterRoutes } from './run-cluster-routes.ts';
import { runDirectEnis } from './run-direct-enis.ts';
import { runPodCidrs } from './run-pod-cidrs.ts';
import { createClaimState, noteRefusal, noteWaits, runPodClaims } from './run-pod-claims.ts';
import { runPodEips } from './run-pod-eips.ts';
import { followRecords, openRecords, runPodRecords } from './run-pod-records.ts';
import { runSubnetPublisher } from './run-subnet-publisher.ts';

const SECOND_MS = 1_000;

/**
 * Does a leader's work until the term is over, or until `drain` aborts: then nothing new is started, and calls in
 * flight have the time of `--shutdown-grace`. Resolves when everything has ended. Rejects only with a fault of ipamd.
 */
export async function runLeader(deps: LeaderDeps, term: Term, drain: AbortSignal): Promise<void> {
  const halt = new AbortController();
  const signal = AbortSignal.any([term.signal, halt.signal]);
  const components = createComponents(deps);
  const { queues, subnets, instances } = components;
  const records = openRecords(deps);
  deps.onTerm({ epoch: term.epoch, queues, records, ciliumNodes: components.ciliumNodes });
  const background: Promise<unknown>[] = [];
  const onDrain = (): void => {
    closeQueues(queues);
    background.push(haltAfterGrace(deps, halt));
  };
  drain.addEventListener('abort', onDrain, { once: true });
  if (drain.aborted) onDrain();
  try {
    if (!(await areSynced(deps.informers, signal))) return;
    background.push(
      subnets.run(signal),
      instances.run(components.instanceIds, signal),
      runAudit(deps, components, signal),
    );
    background.push(runPodEips(deps, components, term, signal), runDirectEnis(deps, components, signal));
    background.push(runSubnetPublisher(deps, components, signal), runClusterRoutes(deps, components, signal));
    background.push(runPodCidrs(deps, components, signal), runCiliumNodes(deps, components, signal));
    background.push(followRecords(records, signal), runPodClaims(deps, components, records, signal));
    background.push(readFormerWrites(formerWriteDeps(deps, components), deps.runtime.random, signal));
    if (deps.config.recordPods) background.push(runPodRecords(deps, records, signal));
    const stopEnqueueing = enqueueNodes(
      { ...deps.informers, machines: deps.machines(), instances, subnets, registered: components.registered },
      queues,
    );
    await Promise.all([runSupply(deps, components, term, signal), runNodes(deps, components, signal)]);
    stopEnqueueing();
  } finally {
    drain.removeEventListener('abort', onDrain);
    closeQueues(queues);
    halt.abort(new Error('the term is over'));
    await Promise.all(background);
    deps.runtime.metrics.clearTerm();
    deps.onTerm(undefined);
  }
}

async function haltAfterGrace({ config, runtime }: LeaderDeps, halt: AbortController): Promise<void> {
  await runtime.clock.sleep(config.shutdownGraceMs, halt.signal).catch(() => {});
  if (halt.signal.aborted) return;
  runtime.log.warn('calls are still in flight; the next leader resolves them');
  halt.abort(new Error('ipamd is ending'));
}

/** Waits until every cache has its first list: a leader would treat an object that it has not read as deleted. */
async function areSynced(informers: Informers, signal: AbortSignal): Promise<boolean> {
  try {
    await Promise.all(Object.values(informers).map((informer) => informer.synced(signal)));
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

function createComponents(deps: LeaderDeps): TermComponents {
  const { config, informers, events } = deps;
  const { clock, log, random, cloud, metrics } = deps.runtime;
  const { nodes, necs, pods, configMaps, vpcEnis } = informers;
  const instances = openInstanceCache({
    cloud,
    clock,
    log,
    stoppedGraceMs: config.stoppedInstanceGraceMs,
    onRefresh: metrics.onInstancesRefresh,
  });
  const machines = { byIndex: (name: string, value: string) => deps.machines()?.byIndex(name, value) ?? [] };
  const instanceIds = (): ReadonlySet<string> => {
    const ofNecs = [...necs.values()].map(({ decoded }) => decoded?.status?.instanceID);
    const ofNodes = [...nodes.values()].map((node) => facts.instanceIdOf(node));
    return new Set([...ofNecs, ...ofNodes].filter((id) => id !== undefined));
  };
  const vpcIds = (): Iterable<string> => {
    const ids = [...instanceIds()].map((id) => instances.find(id)?.instance?.vpcId);
    return new Set(ids.filter((id) => id !== undefined));
  };
  const subnets = openSubnets({
    cloud,
    configMap: { namespace: config.namespace, name: config.configMap },
    configMaps,
    vpcIds,
    onlyNominated: config.onlyNominatedEniSubnets,
    isOptional: config.allocateNodeCidrs,
    clock,
    log,
    events,
    observe: metrics.subnets,
    onFreeIps: (subnetId) => deps.breakers.allowProbe(subnetKey(subnetId)),
  });
  const claims = createClaimState(deps);
  const lookup = new AddressLookup({
    instances: cloud.instances,
    vpcId: () => findClusterVpc({ subnets, instances, instanceIds }),
    log,
  });
  const known = { nodes, machines, pods, instances, subnets, clock, lookup, flags: config };
  const staticEniIndex = new StaticEniIndex({ necs, vpcEnis, byClaim: NECS_BY_CLAIM });
  const staticEnis: NodeFactsDeps['staticEnis'] = (name, requests) => staticEniIndex.ofNode(name, requests);
  const markedOn: MarkedHolders = (ip) =>
    necs.byIndex(NECS_BY_MARKED_IP, ip).map(({ name, decoded }) => {
      return { name, ...(decoded?.status === undefined ? {} : { status: decoded.status }) };
    });
  const movedTo: NodeFactsDeps['movedTo'] = (name) => findMoved(name, necs.get(name)?.decoded?.status, markedOn);
  const queues = makeQueues(clock, random);
  const registered = createRegisteredIps(deps, queues);
  const ciliumNodes = new CiliumFollower(deps.informerDeps, nodes);
  const isServed = config.ciliumNodes !== 'off';
  const facts = createNodeFacts({
    ...{ ...known, claims: claims.requests, movedTo, staticEnis },
    ...(isServed ? { ciliumIpsOf: (name: string) => ciliumNodes.ipsOf(name) } : {}),
    ...(registered === undefined ? {} : { registered }),
  });
  const renewals = new Renewals();
  return {
    queues,
    memory: new NodeMemories(),
    freshNecs: new FreshStore(necs, ({ object }) => object.metadata.resourceVersion),
    renewals,
    subnets,
    instances,
    facts,
    lookup,
    claims,
    staticEniIndex,
    registered,
    podRoutes: config.grRoutes === 'ipamd' ? new RouteCache(clock) : undefined,
    ciliumNodes,
    instanceIds,
  };
}

function formerWriteDeps({ runtime }: LeaderDeps, { memory, freshNecs }: TermComponents): FormerWriteDeps {
  return { kube: runtime.kube, necs: freshNecs, memory, clock: runtime.clock, log: runtime.log };
}

function createRegisteredIps(
  { config, informers, runtime }: LeaderDeps,
  queues: TermComponents['queues'],
): RegisteredIps | undefined {
  const limitMs = config.registeredWaitMs;
  if (limitMs === 0) return undefined;
  return new RegisteredIps({
    ...{ necs: informers.necs, clock: runtime.clock, limitMs },
    onWait: (name, afterMs) => queues.supply.addAfter(name, afterMs),
  });
}

function runSupply(deps: LeaderDeps, components: TermComponents, term: Term, signal: AbortSignal): Promise<void> {
  const { config, informers, events, breakers, cloudObserver } = deps;
  const { clock, log, ids, kube, cloud, metrics } = deps.runtime;
  const { queues, memory, facts } = components;
  const requestTimeoutSeconds = Math.ceil(config.cloudTimeoutMs / SECOND_MS);
  const leader = { epoch: term.epoch, clusterId: config.clusterId, requestTimeoutSeconds, term: { ...term, signal } };
  const enqueue = (name: string): void => queues.supply.add(name);
  const node: NodeDeps = {
    cloud,
    kube,
    necs: components.freshNecs,
    listings: () => informers.necs.listings,
    facts,
    leader,
    ids,
    clock,
    log,
    events,
    observe: metrics.node,
    breakers,
    cloudObserver,
    memory,
    findStaticEni: (eniId) => components.staticEniIndex.find(eniId),
    lostEpochOf: (name) => components.renewals.epochOf(name) ?? (deps.definitions.isRebuilding ? 0 : undefined),
    beginRenewal: (name, epoch, by) => components.renewals.begin(kube, name, epoch, by),
    claimsWait: (name, waits) => noteWaits(components.claims, queues, name, waits),
    claimRefused: (key, refusal) => noteRefusal(components.claims, (claim) => queues.claims.add(claim), key, refusal),
    nodeUidOf: (name) => informers.nodes.get(name)?.uid,
    enqueue,
    queuedAgain: (name, by) => queues.supply.addedAgain(name, by),
  };
  return runController(
    {
      name: 'supply',
      queue: queues.supply,
      workers: config.workers,
      reconcile: async (name, by) =>
        postponeWhileStarting(deps, components, term, name) ??
        (await postponeWithDefinition(deps, name, by)) ??
        (await reconcileNode(node, name, by)),
      clock,
      log,
      observer: metrics.controller,
    },
    signal,
  );
}

/** A cloud that does not describe its instances for this long is reported. */
const STARTING_MS = 60_000;

/**
 * Postpones nodes of which a new leader has described nothing yet. That is no fault of the nodes, and reporting it
 * would cost two writes and an event for every node of the cluster. Undefined: the node is reconciled.
 */
function postponeWhileStarting(
  { informers, runtime }: LeaderDeps,
  { facts }: TermComponents,
  { startedMs }: Term,
  name: string,
): ReconcileResult | undefined {
  if (runtime.clock.monotonicMs() - startedMs >= STARTING_MS) return undefined;
  const entry = informers.necs.get(name);
  if (entry?.decoded === undefined) return undefined;
  const answer = facts.viewOf(name, entry);
  return answer.kind === 'unknown' ? { kind: 'again', afterMs: answer.afterMs } : undefined;
}

/** A deletion that is not the object's own is looked at again after this; then the work has ended mostly. */
const DEFINITION_LOST_MS = 1_000;

/** Postpones a node whose object is deleted with the definition of its kind: that releases nothing. */
async function postponeWithDefinition(
  { informers, definitions }: LeaderDeps,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const { uid = '', deletionTimestamp } = informers.necs.get(name)?.object.metadata ?? {};
  if (deletionTimestamp === undefined) return undefined;
  if (await definitions.isOwnDeletion(NODE_ENI_CONFIG_KIND, uid, signal)) return undefined;
  return { kind: 'again', afterMs: DEFINITION_LOST_MS };
}

function claimantsOf({ nodes, necs }: Informers, lookup: AddressLookup, instanceId: string): readonly Claimant[] {
  const lookedUp = lookup.namesOf(instanceId).map((name) => nodes.get(name));
  const found = lookedUp.filter((node) => node !== undefined && lookup.find(node) === instanceId);
  const all = new Set([...nodes.byIndex(BY_INSTANCE, instanceId), ...found].filter((node) => node !== undefined));
  return [...all].map((node) => {
    const ownsInstance = necs.get(node.name)?.decoded?.status?.instanceID === instanceId;
    return { node, ownsInstance };
  });
}

/** Each write of a taint or an annotation is one call; more workers would only wait for the rate limit. */
const NODE_WORKERS = 50;

function runNodes(deps: LeaderDeps, components: TermComponents, signal: AbortSignal): Promise<void> {
  const { config, informers, events } = deps;
  const { clock, log, kube, metrics } = deps.runtime;
  const { queues, instances, facts, lookup } = components;
  const controller = createNodeController({
    kube,
    nodes: informers.nodes,
    necs: informers.necs,
    instances,
    rivalOf: (name, instanceId) => findRival(name, claimantsOf(informers, lookup, instanceId)),
    facts,
    lookup,
    brake: deps.releaseBrake,
    definitions: deps.definitions,
    renewals: components.renewals,
    flags: config,
    hasSubnets: () => hasEniSubnets(config, components.subnets),
    clock,
    log,
    events,
    observe: metrics.nodes,
    enqueueSupply: (name) => queues.supply.add(name),
  });
  return runController(
    {
      name: 'nodes',
      queue: queues.nodes,
      workers: NODE_WORKERS,
      reconcile: (name, by) => controller.reconcile(name, by),
      clock,
      log,
      observer: metrics.controller,
    },
    signal,
  );
}
