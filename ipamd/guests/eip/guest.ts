import { runController } from '../../../kube/controller.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import { sweepOf } from '../../audit/run-sweep.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import { findWorkload } from '../../cache/find-workload.ts';
import { PODS_BY_NODE, type PodFacts, podKeyOf } from '../../cache/pod-facts.ts';
import type { Guest } from '../../term/guest.ts';
import type { LeaderTerm } from '../../term/leader-term.ts';
import { EipClaimCache, type EipClaimEntry, openEipClaims } from './eip-claim-cache.ts';
import { EipController } from './eip-controller.ts';
import { buildEipPod, type EipPod, requestsEip } from './eip-view.ts';
import { sweptEips } from './sweep-eips.ts';
import { openMasqConfig, syncMasqConfig } from './sync-masq-config.ts';

/** EIPs of Pods: EIPClaims, their calls and quota, and ip-masq-agent's exemption of their Pods. */
export const EIPS: Guest = {
  name: 'eips',
  queue: 'eips',
  open: (term, queue) => {
    const eipClaims = openEipClaims(term.informerDeps);
    const masqConfigs = term.config.eipIpMasq ? openMasqConfig(term.informerDeps) : undefined;
    const claimCache = new EipClaimCache(eipClaims);
    const controller = new EipController({
      ...term,
      claimCache,
      podOf: (key) => findPod(term, key),
      limitOf: (nodeName) => term.necs.get(nodeName)?.decoded?.status?.maxEIPs,
    });
    const caches = [term.pods, term.necs, eipClaims];
    const reconcile = (key: string, by: AbortSignal) => controller.reconcile(key, by);
    const requestComparison = (key: string): void => {
      controller.requestComparison(key);
      queue.add(key);
    };
    return {
      informers: [eipClaims, ...(masqConfigs === undefined ? [] : [masqConfigs])],
      controllers: [
        async (signal) => {
          await Promise.all(caches.map((one) => one.synced(signal)));
          const stop = enqueueEips(term, { queue, claims: eipClaims, claimCache });
          await runController({ ...term, name: 'eips', queue, workers: WORKERS, reconcile }, signal).finally(stop);
        },
        ...(masqConfigs === undefined
          ? []
          : [(signal: AbortSignal) => syncMasqConfig({ ...term, masqConfigs, eipClaims }, signal)]),
      ],
      sweeps: [sweepOf(sweptEips({ ...term, claims: eipClaims, claimCache, requestComparison }), { caches })],
    };
  },
};

/** EIPs are few dozens, and each mostly waits for the cloud. */
const WORKERS = 40;

/** Returns a live Pod with the location of its address, and the workload that its claim ends with. */
function findPod({ pods, necs, deployments }: LeaderTerm, key: string): EipPod | undefined {
  const pod = pods.get(key);
  if (pod === undefined) return undefined;
  const workload = deployments && findWorkload(pod, deployments.values());
  const found = buildEipPod(pod, necs.get(pod.nodeName)?.decoded?.status);
  return workload === undefined ? found : { ...found, workload };
}

/** What the controller of EIPs follows. */
type Own = {
  readonly queue: WorkQueue;
  readonly claims: Informer<EipClaimEntry>;
  readonly claimCache: EipClaimCache;
};

/** Enqueues Pods when something that their EIPs depend on has changed; all of them once at the start. */
function enqueueEips({ pods, necs }: LeaderTerm, { queue, claims, claimCache }: Own): () => void {
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
