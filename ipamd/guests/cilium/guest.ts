import { runController } from '../../../kube/controller.ts';
import type { ObjectChange } from '../../../kube/object-cache.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { runTogether } from '../../../runtime/run-together.ts';
import type { Guest } from '../../term/guest.ts';
import type { LeaderTerm } from '../../term/leader-term.ts';
import type { CiliumNodeEntry } from './cilium-node-entry.ts';
import { CiliumReconciler } from './cilium-reconciler.ts';
import { CiliumFollower } from './follow-cilium-nodes.ts';

/** Addresses of ipamd for nodes that Cilium serves with `ipam=crd`, through their CiliumNodes. */
export const CILIUM: Guest = {
  name: 'cilium',
  isWanted: ({ ciliumNodes }) => ciliumNodes !== 'off',
  queue: 'cilium',
  open: (term, queue) => {
    const follower = new CiliumFollower(term.informerDeps, term.nodes);
    return {
      controllers: [(signal) => runCiliumNodes(term, { queue, follower }, signal)],
      wants: { keptIps: ({ name, isCiliumCrd }) => (isCiliumCrd === true ? follower.ipsOf(name) : undefined) },
      notes: {
        requested: (node) => {
          if (term.nodes.get(node)?.isCiliumCrd === true) queue.add(node);
        },
      },
      shownInformers: () => ({ ciliumNodes: follower.informer }),
    };
  },
};

/** Each worker mostly waits for the API server. */
const WORKERS = 20;
/** Pods that start together are one change of the demand. */
const PODS_MS = 1_000;

/** What this guest has in one term. */
type Own = { readonly queue: WorkQueue; readonly follower: CiliumFollower };

/**
 * Reconciles the CiliumNodes of labelled nodes until aborted. Their informer is opened only once a node has the label and
 * the cluster has CiliumNodes. Rejects only with a fault of ipamd.
 */
async function runCiliumNodes(term: LeaderTerm, { queue, follower }: Own, signal: AbortSignal): Promise<void> {
  const { nodes, queues } = term;
  const reconciler = new CiliumReconciler({ ...term, ciliumNodes: follower });
  const labelled = new ChangeSignal(term.clock);
  const enqueue = ({ key, before, after }: ObjectChange<CiliumNodeEntry>): void => {
    if (nodes.get(key)?.isCiliumCrd !== true) return;
    queue.add(key);
    // What is no more in the pool may be given back.
    const ips = [...(before?.ipam.pool.keys() ?? []), ...(before?.ipam.used.keys() ?? [])];
    if (ips.some((ip) => after?.ipam.pool.has(ip) !== true && after?.ipam.used.has(ip) !== true))
      queues.supply.add(key);
  };
  const reconcile = (name: string, by: AbortSignal) => reconciler.reconcile(name, by);
  const stop = enqueueCiliumNodes(term, queue, () => labelled.notify());
  try {
    await runTogether(
      [
        (by) => follower.run(labelled, enqueue, by),
        (by) => runController({ ...term, name: 'cilium', queue, workers: WORKERS, reconcile }, by),
      ],
      { signal, log: term.log },
    );
  } finally {
    stop();
  }
}

/** Enqueues labelled nodes when something changes that their CiliumNode depends on; all of them once at the start. */
function enqueueCiliumNodes(
  { nodes, necs, pods }: Pick<LeaderTerm, 'nodes' | 'necs' | 'pods'>,
  queue: WorkQueue,
  onLabelled: () => void,
): () => void {
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
