import { runController } from '../../kube/controller.ts';
import type { ObjectChange } from '../../kube/object-cache.ts';
import type { WorkQueue } from '../../kube/work-queue.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { CiliumNodeEntry } from '../cilium/cilium-node-entry.ts';
import { type CiliumDeps, CiliumReconciler } from '../cilium/cilium-reconciler.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';
import type { Informers } from './open-informers.ts';

/** Each worker mostly waits for the API server. */
const WORKERS = 20;
/** Pods that start together are one change of the demand. */
const PODS_MS = 1_000;

/**
 * Reconciles the CiliumNodes of labelled nodes until aborted. Their informer is opened only once a node has the label and
 * the cluster has CiliumNodes. Rejects only with a fault of ipamd.
 */
export async function runCiliumNodes(
  deps: LeaderDeps,
  { queues, facts, ciliumNodes: follower }: TermComponents,
  signal: AbortSignal,
): Promise<void> {
  const { config, informers, events } = deps;
  if (config.ciliumNodes === 'off') return;
  const { kube, clock, log, metrics } = deps.runtime;
  const { nodes, necs, pods } = informers;
  const observe = metrics.cilium;
  const ciliumNodes: CiliumDeps['ciliumNodes'] = () => follower.state;
  const flags = config;
  const reconciler = new CiliumReconciler({
    ...{ kube, nodes, necs, pods, ciliumNodes, facts, flags, clock, log, events, observe },
  });
  const labelled = new ChangeSignal(clock);
  const enqueue = ({ key, before, after }: ObjectChange<CiliumNodeEntry>): void => {
    if (nodes.get(key)?.isCiliumCrd !== true) return;
    queues.cilium.add(key);
    // What is no more in the pool may be given back.
    const ips = [...(before?.ipam.pool.keys() ?? []), ...(before?.ipam.used.keys() ?? [])];
    if (ips.some((ip) => after?.ipam.pool.has(ip) !== true && after?.ipam.used.has(ip) !== true))
      queues.supply.add(key);
  };
  const stop = enqueueCiliumNodes(informers, queues.cilium, () => labelled.notify());
  try {
    await Promise.all([
      follower.run(labelled, enqueue, signal),
      runController(
        {
          ...{ name: 'cilium', queue: queues.cilium, workers: WORKERS, clock, log, observer: metrics.controller },
          reconcile: (name, by) => reconciler.reconcile(name, by),
        },
        signal,
      ),
    ]);
  } finally {
    stop();
  }
}

/** Enqueues labelled nodes when something changes that their CiliumNode depends on; all of them once at the start. */
function enqueueCiliumNodes({ nodes, necs, pods }: Informers, queue: WorkQueue, onLabelled: () => void): () => void {
  const isServed = (name: string): boolean => nodes.get(name)?.isCiliumCrd === true;
  for (const { name, isCiliumCrd } of nodes.values()) if (isCiliumCrd === true) queue.add(name);
  const stops = [
    nodes.subscribe(({ key, before, after }) => {
      if (before?.isCiliumCrd === after?.isCiliumCrd && before?.uid === after?.uid) return;
      queue.add(key);
      if (after?.isCiliumCrd === true) onLabelled();
    }),
    necs.subscribe(({ key }) => {
      if (isServed(key)) queue.add(key);
    }),
    pods.subscribe(({ before, after }) => {
      const name = (after ?? before)?.nodeName ?? '';
      if (isServed(name) && before?.ips.join() !== after?.ips.join()) queue.addAfter(name, PODS_MS);
    }),
  ];
  return () => {
    for (const end of stops) end();
  };
}
