import { runController } from '../../../kube/controller.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import { runTogether } from '../../../runtime/run-together.ts';
import { runSweep, type SweepDeps } from '../../audit/run-sweep.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import { PODS_BY_NODE, type PodFacts, type PodOwner, podKeyOf } from '../../cache/pod-facts.ts';
import type { Term } from '../../calls/term.ts';
import { EipClaimCache, type EipClaimEntry } from './eip-claim-cache.ts';
import { EipController } from './eip-controller.ts';
import type { EipDeps } from './eip-deps.ts';
import { buildEipPod, requestsEip } from './eip-view.ts';
import { sweptEips } from './sweep-eips.ts';

/** Dependencies of the EIP controller and of the sweep of EIPs. */
type RunEipsDeps = Omit<EipDeps, 'podOf' | 'limitOf' | 'claimCache'> &
  SweepDeps &
  Pick<Term, 'pods' | 'necs' | 'observer'> & {
    readonly eipClaims: Informer<EipClaimEntry>;
    readonly queues: { readonly eips: WorkQueue };
    /** Returns the workload that a Pod's claim ends with; undefined for claims that outlive workloads. */
    readonly workloadOf?: (pod: PodFacts) => PodOwner | undefined;
  };

/** EIPs are few dozens, and each mostly waits for the cloud. */
const WORKERS = 40;

/** Reconciles the EIPs of all Pods until aborted, once every informer has its first list. For the leader only. */
export async function runEips(deps: RunEipsDeps, signal: AbortSignal): Promise<void> {
  const { pods, necs, eipClaims: claims, queues } = deps;
  const queue = queues.eips;
  await Promise.all([pods, necs, claims].map((informer) => informer.synced(signal)));
  const claimCache = new EipClaimCache(claims);
  const controller = new EipController({
    ...deps,
    claimCache,
    podOf: (key) => {
      const pod = pods.get(key);
      if (pod === undefined) return undefined;
      const workload = deps.workloadOf?.(pod);
      const found = buildEipPod(pod, necs.get(pod.nodeName)?.decoded?.status);
      return workload === undefined ? found : { ...found, workload };
    },
    limitOf: (nodeName) => necs.get(nodeName)?.decoded?.status?.maxEIPs,
  });
  const stop = enqueueEips(deps, claimCache);
  const requestComparison = (key: string): void => {
    controller.requestComparison(key);
    queue.add(key);
  };
  const reconcile = (key: string, by: AbortSignal) => controller.reconcile(key, by);
  try {
    await runTogether(
      [
        (by) => runController({ ...deps, name: 'eips', queue, workers: WORKERS, reconcile }, by),
        (by) => runSweep(sweptEips({ ...deps, claims, claimCache, requestComparison }), deps, by),
      ],
      { signal, log: deps.log },
    );
  } finally {
    stop();
  }
}

/** Enqueues Pods when something that their EIPs depend on has changed; all of them once at the start. */
function enqueueEips({ pods, necs, eipClaims: claims, queues }: RunEipsDeps, claimCache: EipClaimCache): () => void {
  const queue = queues.eips;
  const enqueue = (pod: PodFacts): void => {
    if (requestsEip(pod) || claimCache.has(podKeyOf(pod))) queue.add(podKeyOf(pod));
  };
  for (const pod of pods.values()) enqueue(pod);
  for (const { key } of claims.values()) queue.add(key);
  const ends = [
    pods.subscribe(({ before, after }) => {
      for (const pod of [before, after]) if (pod !== undefined) enqueue(pod);
    }),
    claims.subscribe(({ key, before, after }) => {
      queue.add(key);
      // A waiting claim may get an EIP now: one of a node's EIPs, or one of a list, may have become free.
      const isFreed =
        before?.nodeName !== after?.nodeName || (before?.eipIds.length ?? 0) > (after?.eipIds.length ?? 0);
      if (before !== undefined && isFreed) enqueueWaiting(claims, queue);
    }),
    necs.subscribe(({ key, before, after }) => {
      // The agent often writes its demand; only these fields show that an address came, went or moved.
      if (isSameSupply(before, after)) return;
      for (const pod of pods.byIndex(PODS_BY_NODE, key)) enqueue(pod);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

const DONE_PHASES: readonly (string | undefined)[] = ['Bound', 'Retained'];

function enqueueWaiting(claims: Informer<EipClaimEntry>, queue: WorkQueue): void {
  for (const { key, claim } of claims.values()) if (!DONE_PHASES.includes(claim?.status?.phase)) queue.add(key);
}

function isSameSupply(before: NecEntry | undefined, after: NecEntry | undefined): boolean {
  const [was, is] = [before?.decoded?.status, after?.decoded?.status];
  return was?.supplyEpoch === is?.supplyEpoch && was?.maxEIPs === is?.maxEIPs;
}
