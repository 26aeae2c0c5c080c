import { type ReconcileResult, runController } from '../../kube/controller.ts';
import type { Term } from '../../kube/election/term.ts';
import { KeptBook } from '../direct/kept-book.ts';
import { subnetKey } from '../node/call-keys.ts';
import type { NodeDeps } from '../node/node-deps.ts';
import { NodeMemoryBook } from '../node/node-memory.ts';
import { reconcileNode } from '../node/reconcile-node.ts';
import { type Claimant, findRival } from '../nodes/find-rival.ts';
import { openInstanceBook } from '../nodes/instance-book.ts';
import { createNodeController } from '../nodes/node-controller.ts';
import { createNodeFacts, type NodeFactsDeps } from '../nodes/node-facts.ts';
import { BY_INSTANCE, type Informers } from '../open-informers.ts';
import { findMoved, type MarkedHolders } from '../static/find-moved.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP } from '../static/see-claim.ts';
import { openSubnets } from '../subnets/open-subnets.ts';
import { keepDirectEnis } from './keep-direct-enis.ts';
import { keepPodClaims, makeClaimParts, noteRefusal, noteWaits } from './keep-pod-claims.ts';
import { keepPodEips } from './keep-pod-eips.ts';
import { followRecords, keepPodRecords, openRecords } from './keep-pod-records.ts';
import type { LeadDeps, TermParts } from './lead-deps.ts';
import { closeQueues, makeQueues } from './queues.ts';
import { runAudit } from './run-audit.ts';
import { tellSubnets } from './tell-subnets.ts';
import { wakeNodes } from './wake-ups.ts';

const SECOND_MS = 1_000;

/**
 * Does a leader's work until the term is over, or until `drain` aborts: then nothing new is started, and calls in
 * flight have the time of `--shutdown-grace`. Resolves when everything has ended. Rejects only with a fault of ipamd.
 */
export async function lead(deps: LeadDeps, term: Term, drain: AbortSignal): Promise<void> {
  const halt = new AbortController();
  const signal = AbortSignal.any([term.signal, halt.signal]);
  const parts = makeParts(deps);
  const { queues, subnets, instances } = parts;
  const records = openRecords(deps);
  deps.onTerm({ epoch: term.epoch, queues, records });
  const background: Promise<unknown>[] = [];
  const onDrain = (): void => {
    closeQueues(queues);
    background.push(haltAfterGrace(deps, halt));
  };
  drain.addEventListener('abort', onDrain, { once: true });
  if (drain.aborted) onDrain();
  try {
    if (!(await areSynced(deps.informers, signal))) return;
    background.push(subnets.run(signal), instances.run(parts.instanceIds, signal), runAudit(deps, parts, signal));
    background.push(keepPodEips(deps, parts, term, signal), keepDirectEnis(deps, parts, signal));
    background.push(tellSubnets(deps, parts, signal));
    background.push(followRecords(records, signal), keepPodClaims(deps, parts, records, signal));
    if (deps.config.recordPods) background.push(keepPodRecords(deps, records, signal));
    const stopWaking = wakeNodes({ ...deps.informers, machines: deps.machines(), instances, subnets }, queues);
    await Promise.all([runSupply(deps, parts, term, signal), runNodes(deps, parts, signal)]);
    stopWaking();
  } finally {
    drain.removeEventListener('abort', onDrain);
    closeQueues(queues);
    halt.abort(new Error('the term is over'));
    await Promise.all(background);
    deps.runtime.metrics.forgetTerm();
    deps.onTerm(undefined);
  }
}

async function haltAfterGrace({ config, runtime }: LeadDeps, halt: AbortController): Promise<void> {
  await runtime.clock.sleep(config.shutdownGraceMs, halt.signal).catch(() => {});
  if (halt.signal.aborted) return;
  runtime.log.warn('calls are still under way, the next leader finds out what became of them');
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

function makeParts(deps: LeadDeps): TermParts {
  const { config, informers, events } = deps;
  const { clock, log, random, cloud, metrics } = deps.runtime;
  const { nodes, necs, pods, configMaps, vpcEnis } = informers;
  const instances = openInstanceBook({
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
    clock,
    log,
    events,
    observe: metrics.subnets,
    onRoom: (subnetId) => deps.breakers.ease(subnetKey(subnetId)),
  });
  const claims = makeClaimParts(deps);
  const known = { nodes, machines, pods, instances, subnets, clock, flags: config };
  const kept = new KeptBook({ necs, vpcEnis, byClaim: NECS_BY_CLAIM });
  const keptEnis: NodeFactsDeps['keptEnis'] = (name, wishes) => kept.ofNode(name, wishes);
  const markedOn: MarkedHolders = (ip) =>
    necs.byIndex(NECS_BY_MARKED_IP, ip).map(({ name, decoded }) => {
      return { name, ...(decoded?.status === undefined ? {} : { status: decoded.status }) };
    });
  const movedTo: NodeFactsDeps['movedTo'] = (name) => findMoved(name, necs.get(name)?.decoded?.status, markedOn);
  const facts = createNodeFacts({ ...known, claims: claims.book, movedTo, keptEnis });
  const queues = makeQueues(clock, random);
  return { queues, memory: new NodeMemoryBook(), subnets, instances, facts, claims, kept, instanceIds };
}

function runSupply(deps: LeadDeps, parts: TermParts, term: Term, signal: AbortSignal): Promise<void> {
  const { config, informers, events, breakers, eyes } = deps;
  const { clock, log, ids, kube, cloud, metrics } = deps.runtime;
  const { queues, memory, facts } = parts;
  const requestTimeoutSeconds = Math.ceil(config.cloudTimeoutMs / SECOND_MS);
  const leader = { epoch: term.epoch, clusterId: config.clusterId, requestTimeoutSeconds, term: { ...term, signal } };
  const wake = (name: string): void => queues.supply.add(name);
  const node: NodeDeps = {
    cloud,
    kube,
    necs: informers.necs,
    facts,
    leader,
    ids,
    clock,
    log,
    events,
    observe: metrics.node,
    breakers,
    eyes,
    memory,
    keptEni: (eniId) => parts.kept.find(eniId),
    claimsWait: (name, waits) => noteWaits(parts.claims, queues, name, waits),
    claimRefused: (key, refusal) => noteRefusal(parts.claims, (claim) => queues.claims.add(claim), key, refusal),
    wake,
  };
  return runController(
    {
      name: 'supply',
      queue: queues.supply,
      workers: config.workers,
      reconcile: async (name, by) => stillStarting(deps, parts, term, name) ?? (await reconcileNode(node, name, by)),
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
function stillStarting(
  { informers, runtime }: LeadDeps,
  { facts }: TermParts,
  { startedMs }: Term,
  name: string,
): ReconcileResult | undefined {
  if (runtime.clock.monotonicMs() - startedMs >= STARTING_MS) return undefined;
  const entry = informers.necs.get(name);
  if (entry?.decoded === undefined) return undefined;
  const answer = facts.viewOf(name, entry);
  return answer.kind === 'unknown' ? { kind: 'again', afterMs: answer.afterMs } : undefined;
}

function claimantsOf({ nodes, necs }: Informers, instanceId: string): readonly Claimant[] {
  return nodes.byIndex(BY_INSTANCE, instanceId).map((node) => {
    const holds = necs.get(node.name)?.decoded?.status?.instanceID === instanceId;
    return { node, holds };
  });
}

/** Each write of a taint or an annotation is one call; more workers would only wait for the rate limit. */
const NODE_WORKERS = 50;

function runNodes(deps: LeadDeps, parts: TermParts, signal: AbortSignal): Promise<void> {
  const { config, informers, events } = deps;
  const { clock, log, kube, metrics } = deps.runtime;
  const { queues, instances, facts } = parts;
  const controller = createNodeController({
    kube,
    nodes: informers.nodes,
    necs: informers.necs,
    instances,
    rivalOf: (name, instanceId) => findRival(name, claimantsOf(informers, instanceId)),
    facts,
    flags: config,
    clock,
    log,
    events,
    observe: metrics.nodes,
    wake: (name) => queues.supply.add(name),
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
