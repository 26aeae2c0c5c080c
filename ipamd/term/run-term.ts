import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { type ReconcileResult, runController } from '../../kube/controller.ts';
import type { Leadership } from '../../kube/election/term.ts';
import { runTogether } from '../../runtime/run-together.ts';
import { eniSweep } from '../audit/run-audit.ts';
import type { Sweep } from '../audit/run-sweep.ts';
import { readFormerWrites } from '../calls/read-former-writes.ts';
import { reconcileNode } from '../calls/reconcile-node.ts';
import { runVpcEnis } from '../exclusive/run-vpc-enis.ts';
import { createNodeController } from '../nodes/node-controller.ts';
import { runSubnetReports } from '../subnets/run-subnet-reports.ts';
import { enqueueNodes } from './enqueue-nodes.ts';
import type { Controller, OpenGuest } from './guest.ts';
import type { LeaderTerm } from './leader-term.ts';
import type { Informers } from './open-informers.ts';
import { type LeaderDeps, openTerm } from './open-term.ts';

/**
 * Does a leader's work until the term is over, or until `drain` aborts: then nothing new is started, and calls in
 * flight have the time of `--shutdown-grace`. Resolves when everything has ended. A fault of ipamd in one
 * controller ends all, and rejects.
 */
export async function runTerm(deps: LeaderDeps, leadership: Leadership, drain: AbortSignal): Promise<void> {
  const halt = new AbortController();
  const signal = AbortSignal.any([leadership.signal, halt.signal]);
  const { term, guests, queues } = openTerm(deps, leadership, signal);
  const { vips, claims, deployments } = term;
  const shown = () => Object.assign({}, ...guests.map(({ shownInformers }) => shownInformers?.()), { vips, claims });
  deps.onTerm({ epoch: leadership.epoch, queues, informers: shown });
  let grace: Promise<void> | undefined;
  let stopEnqueueing: (() => void) | undefined;
  const onDrain = (): void => {
    for (const queue of Object.values(queues)) queue.close();
    grace = haltAfterGrace(term, halt);
  };
  drain.addEventListener('abort', onDrain, { once: true });
  if (drain.aborted) onDrain();
  try {
    if (!(await areSynced(deps.informers, signal))) return;
    stopEnqueueing = enqueueNodes(term);
    const own = [vips, claims, deployments, ...guests.flatMap(({ informers = [] }) => informers)];
    let supplying = 2;
    const untilDrained = async (work: Promise<void>): Promise<void> => {
      await work;
      supplying -= 1;
      if (supplying === 0) halt.abort(new Error(TERM_OVER));
    };
    const works: readonly Controller[] = [
      (by) => Promise.all(own.map((informer) => informer?.start(by))),
      ...controllersOf(term),
      ...guests.flatMap(({ controllers = [], sweeps = [] }) => [
        ...controllers,
        ...sweeps.map((one) => sweep(term, one)),
      ]),
      (by) => untilDrained(runSupply(term, guests, by)),
      (by) => untilDrained(runNodes(term, by)),
    ];
    await runTogether(works, { signal, halt, log: deps.log });
  } finally {
    stopEnqueueing?.();
    drain.removeEventListener('abort', onDrain);
    for (const queue of Object.values(queues)) queue.close();
    halt.abort(new Error(TERM_OVER));
    await grace;
    deps.metrics.clearTerm();
    deps.onTerm(undefined);
  }
}

/** Work of the core beside that on the queues, in the order in which it starts. */
function controllersOf(term: LeaderTerm): readonly Controller[] {
  const { subnets, instances, instanceIds, freshNecs } = term;
  return [
    (signal) => subnets.run(signal),
    (signal) => instances.run(instanceIds, signal),
    sweep(term, eniSweep(term)),
    (signal) => runVpcEnis(term, signal),
    (signal) => runSubnetReports(term, signal),
    (signal) => readFormerWrites({ ...term, necs: freshNecs }, signal),
  ];
}

function sweep(term: LeaderTerm, run: Sweep): Controller {
  return (signal) => run(term, signal);
}

const TERM_OVER = 'the term is over';

async function haltAfterGrace({ config, clock, log }: LeaderTerm, halt: AbortController): Promise<void> {
  await clock.sleep(config.shutdownGraceMs, halt.signal).catch(() => {});
  if (halt.signal.aborted) return;
  log.warn('calls are still in flight; the next leader resolves them');
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

async function runSupply(term: LeaderTerm, guests: readonly OpenGuest[], signal: AbortSignal): Promise<void> {
  const { kube, queues, renewals, config } = term;
  const node: Parameters<typeof reconcileNode>[0] = {
    ...term,
    necs: term.freshNecs,
    listings: () => term.necs.listings,
    lostEpochOf: (name) => renewals.epochOf(name) ?? (term.definitions.wereLostLately ? 0 : undefined),
    beginRenewal: (name, epoch, by) => renewals.begin(kube, name, epoch, by),
    claimsWait: (name, waits) => {
      for (const { notes } of guests) notes?.claimsWait?.(name, waits);
    },
    claimRefused: (key, refusal) => {
      for (const { notes } of guests) notes?.claimRefused?.(key, refusal);
    },
    queuedAgain: (name, by) => queues.supply.addedAgain(name, by),
  };
  const reconcile = async (name: string, by: AbortSignal): Promise<ReconcileResult> =>
    postponeWhileStarting(term, name) ??
    (await postponeWithDefinition(term, name, by)) ??
    (await reconcileNode(node, name, by));
  await runController({ ...term, name: 'supply', queue: queues.supply, workers: config.workers, reconcile }, signal);
}

/** A cloud that does not describe its instances for this long is reported. */
const STARTING_MS = 60_000;

/**
 * Postpones nodes of which a new leader has described nothing yet. That is no fault of the nodes, and reporting it
 * would cost two writes and an event for every node of the cluster. Undefined: the node is reconciled.
 */
function postponeWhileStarting({ clock, leader, necs, facts }: LeaderTerm, name: string): ReconcileResult | undefined {
  if (clock.monotonicMs() - leader.term.startedMs >= STARTING_MS) return undefined;
  const entry = necs.get(name);
  if (entry?.decoded === undefined) return undefined;
  const afterMs = facts.unknownFor(name, entry);
  return afterMs === undefined ? undefined : { kind: 'again', afterMs };
}

/** A deletion that is not the object's own is looked at again after this; then the work has ended mostly. */
const DEFINITION_LOST_MS = 1_000;

/** Postpones a node whose object is deleted with the definition of its kind: that releases nothing. */
async function postponeWithDefinition(
  { necs, definitions }: LeaderTerm,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
  const { uid = '', deletionTimestamp } = necs.get(name)?.object.metadata ?? {};
  if (deletionTimestamp === undefined) return undefined;
  if (await definitions.isOwnDeletion(NODE_ENI_CONFIG_KIND, uid, signal)) return undefined;
  return { kind: 'again', afterMs: DEFINITION_LOST_MS };
}

/** Each write of a taint or an annotation is one call; more workers would only wait for the rate limit. */
const NODE_WORKERS = 50;

async function runNodes(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const controller = createNodeController(term);
  const reconcile = (name: string, by: AbortSignal) => controller.reconcile(name, by);
  await runController({ ...term, name: 'nodes', queue: term.queues.nodes, workers: NODE_WORKERS, reconcile }, signal);
}
