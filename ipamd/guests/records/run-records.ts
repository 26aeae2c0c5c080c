import { runController } from '../../../kube/controller.ts';
import { TokenBucket } from '../../../kube/token-bucket.ts';
import { WorkQueue } from '../../../kube/work-queue.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import type { Term } from '../../calls/term.ts';
import type { IpamdConfig } from '../../config/options.ts';
import { RecordsReconciler, type RecordsTerm } from './records-reconciler.ts';

type RunRecordsTerm = RecordsTerm &
  Pick<Term, 'random' | 'observer'> & { readonly config: Pick<IpamdConfig, 'kubeClientQps' | 'recordDelayMs'> };

/** Share of the calls to the API server: the rest is for calls that addresses wait for. */
const SHARE_OF_CALLS = 0.5;

/** Writes mostly wait for answers; the rate limits the throughput. */
const WORKERS = 4;

/** Reconciles the records of all Pods until aborted, once every informer has its first list. For the leader only. */
export async function runRecords(term: RunRecordsTerm, signal: AbortSignal): Promise<void> {
  const { config, clock, log, random, pods, vips, claims, necs, observer } = term;
  await Promise.all([pods, vips, claims, necs].map((informer) => informer.synced(signal)));
  const bucket = new TokenBucket(clock, Math.max(1, config.kubeClientQps * SHARE_OF_CALLS), 1);
  const reconciler = new RecordsReconciler(term, (ended) => bucket.take(ended));
  const queue = new WorkQueue({ clock, random });
  const unsubscribe = followChanges(term, (nodeName) => {
    // Pods without a node have no records.
    if (nodeName !== '') queue.addAfter(nodeName, config.recordDelayMs);
  });
  for (const nodeName of reconciler.nodes()) queue.add(nodeName);
  try {
    const reconcile = (nodeName: string, ended: AbortSignal) => reconciler.reconcile(nodeName, ended);
    await runController({ name: 'records', queue, workers: WORKERS, reconcile, clock, log, observer }, signal);
  } finally {
    unsubscribe();
    queue.close();
  }
}

/** Calls `enqueue` for each node whose records may be stale. */
function followChanges({ pods, vips, claims, necs }: RunRecordsTerm, enqueue: (nodeName: string) => void): () => void {
  const ends = [
    pods.subscribe(({ before, after }) => {
      for (const pod of [before, after]) if (pod !== undefined) enqueue(pod.nodeName);
    }),
    vips.subscribe(({ before, after }) => {
      for (const vip of [before, after]) {
        if (vip === undefined) continue;
        enqueue(vip.nodeName);
        const claimPod = pods.get(vip.podKey);
        if (claimPod !== undefined) enqueue(claimPod.nodeName);
      }
    }),
    claims.subscribe(({ key, before, after }) => {
      for (const nodeName of [before?.nodeName, after?.nodeName, pods.get(key)?.nodeName]) {
        if (nodeName !== undefined) enqueue(nodeName);
      }
    }),
    necs.subscribe(({ key, before, after }) => {
      // The agent often writes its demand; only the epoch shows that addresses came or went.
      if (epochOf(before) !== epochOf(after)) enqueue(key);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function epochOf(entry: NecEntry | undefined): number | undefined {
  return entry?.decoded?.status?.supplyEpoch;
}
