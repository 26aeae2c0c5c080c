import { type ControllerObserver, runController } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { TokenBucket } from '../../kube/token-bucket.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import type { ClaimFacts, VipFacts } from '../cache/record-facts.ts';
import { type RecordsDeps, RecordsReconciler } from './records-reconciler.ts';

/** Dependencies of the records controller, once informers exist. */
type RunRecordsDeps = Omit<RecordsDeps, 'acquireWrite' | 'pods' | 'vips' | 'claims' | 'necs'> & {
  readonly pods: Informer<PodFacts>;
  readonly vips: Informer<VipFacts>;
  readonly claims: Informer<ClaimFacts>;
  readonly necs: Informer<NecEntry>;
  readonly random: () => number;
  /**
   * Writes a second in total. Each Pod that comes and goes needs three. The writes also wait for the rate limit of
   * `kube`: a client of its own separates them from all other requests.
   */
  readonly writesPerSecond: number;
  /** Changes of one node within this time, in milliseconds, are handled together at its end. */
  readonly delayMs: number;
  readonly observer?: ControllerObserver;
};

/** Writes mostly wait for answers; the rate limits the throughput. */
const WORKERS = 4;
/** Reconciles the records of all Pods until aborted, once every informer has its first list. For the leader only. */
export async function runRecords(deps: RunRecordsDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, random, pods, vips, claims, necs, observer, writesPerSecond, delayMs } = deps;
  await Promise.all([pods, vips, claims, necs].map((informer) => informer.synced(signal)));
  const bucket = new TokenBucket(clock, writesPerSecond, 1);
  const reconciler = new RecordsReconciler({ ...deps, acquireWrite: (ended) => bucket.take(ended) });
  const queue = new WorkQueue({ clock, random });
  const unsubscribe = followChanges(deps, (nodeName) => {
    // Pods without a node have no records.
    if (nodeName !== '') queue.addAfter(nodeName, delayMs);
  });
  for (const nodeName of reconciler.nodes()) queue.add(nodeName);
  try {
    const reconcile = (nodeName: string, ended: AbortSignal) => reconciler.reconcile(nodeName, ended);
    await runController(
      { name: 'records', queue, workers: WORKERS, reconcile, clock, log, ...(observer && { observer }) },
      signal,
    );
  } finally {
    unsubscribe();
    queue.close();
  }
}

/** Calls `enqueue` for each node whose records may be stale. */
function followChanges({ pods, vips, claims, necs }: RunRecordsDeps, enqueue: (nodeName: string) => void): () => void {
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
