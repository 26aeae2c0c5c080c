import { isDeepStrictEqual } from 'node:util';
import { runController } from '../../../kube/controller.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import { PODS_BY_NODE, podKeyOf, refOfKey } from '../../cache/pod-facts.ts';
import { NECS_BY_MARKED_IP, readClaimKeys, readMarkedIps, readMarkOf } from '../../decide/mark-indexes.ts';
import { ClaimViewBuilder } from './build-claim-view.ts';
import { ClaimReconciler } from './claim-reconciler.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { ReservationRunner } from './reservation-runner.ts';
import { ZoneNames } from './zone-names.ts';

/** A reconcile of a claim makes one or two writes; the rate of calls limits the throughput. */
const WORKERS = 16;
/** Retry while the subnets were not described. */
const STARTING_MS = 500;

/**
 * Reconciles the claims of all Pods until aborted, once every informer has its first list. For the leader only. The
 * requests are complete when each claim that existed at the start was reconciled once.
 */
export async function runClaims(term: ClaimsTerm, signal: AbortSignal): Promise<void> {
  const { clock, pods, nodes, necs, vips, claims, configs, deployments, requests, enqueueNode } = term;
  const queue = term.queues.claims;
  await Promise.all([pods, nodes, necs, vips, claims, configs, deployments].map((one) => one?.synced(signal)));
  while (!term.subnets.isReady) await clock.sleep(STARTING_MS, signal);
  const reservations = new ReservationRunner(term);
  const zoneNames = new ZoneNames(term);
  const views = new ClaimViewBuilder(term, reservations, zoneNames);
  for (const name of nodes.keys()) views.noteNode(name);
  const reconciler = new ClaimReconciler({ ...term, views, reservations, zoneNames });
  const unsubscribe = followChanges(term, views, (key) => queue.add(key), signal);
  const first = views.keys();
  const left = new Set(first);
  const markReconciled = (key: string): void => {
    left.delete(key);
    if (left.size > 0 || requests.isComplete) return;
    requests.complete();
    for (const name of necs.keys()) if (hasMarks(necs.get(name))) enqueueNode(name);
    for (const name of nodesOf(term, first)) enqueueNode(name);
  };
  for (const key of first) queue.add(key);
  if (left.size === 0) markReconciled('');
  try {
    const reconcile = async (key: string, ended: AbortSignal) => {
      try {
        return await reconciler.reconcile(key, ended);
      } finally {
        // A claim that fails has no requests: its marks stay unchanged, and no other claim waits for it.
        markReconciled(key);
      }
    };
    await runController({ ...term, name: 'claims', queue, workers: WORKERS, reconcile }, signal);
  } finally {
    unsubscribe();
    queue.close();
  }
}

function hasMarks(entry: NecEntry | undefined): boolean {
  return readClaimKeys(entry?.decoded?.status).length > 0;
}

function nodesOf({ pods }: ClaimsTerm, keys: ReadonlySet<string>): ReadonlySet<string> {
  const names = [...keys].flatMap((key) => pods.get(key)?.nodeName ?? []);
  return new Set(names.filter((name) => name !== ''));
}

const DONE_PHASES: readonly (string | undefined)[] = ['Bound', 'Retained'];

/** Calls `touch` for each claim whose decision may have changed. */
function followChanges(
  term: ClaimsTerm,
  views: ClaimViewBuilder,
  touch: (key: string) => void,
  signal: AbortSignal,
): () => void {
  const { pods, nodes, necs, vips, claims, vpcEnis, subnets } = term;
  // Changes of subnets matter only to claims without an address, which are few.
  const enqueueWaiting = (): void => {
    for (const { key, staticObject } of claims.values()) {
      if (staticObject !== undefined && !DONE_PHASES.includes(staticObject.decoded?.status?.phase)) touch(key);
    }
  };
  const enqueueClaimsOf = (name: string): void => {
    for (const key of readClaimKeys(necs.get(name)?.decoded?.status)) touch(key);
    for (const pod of pods.byIndex(PODS_BY_NODE, name)) if (pod.claimInfo !== undefined) touch(podKeyOf(pod));
  };
  const ends = [
    pods.subscribe(({ key, before, after }) => {
      if (before !== undefined && before.uid !== after?.uid) views.freed.noteFreed(before.ips);
      const isConcerned = [before, after].some((pod) => pod?.claimInfo !== undefined);
      if (isConcerned || claims.get(key)?.staticObject !== undefined) touch(key);
    }),
    claims.subscribe(({ key, before, after }) => {
      if (before?.staticObject !== undefined || after?.staticObject !== undefined) return touch(key);
      // A record of a Pod with the same name, without a static address, would conflict with the claim.
      if (pods.get(key)?.claimInfo !== undefined) touch(key);
    }),
    vips.subscribe(({ before, after }) => {
      const isSameHolder =
        before?.ip === after?.ip && before?.podKey === after?.podKey && before?.podUid === after?.podUid;
      if (before !== undefined && !isSameHolder) views.freed.noteFreed([before.ip]);
      for (const vip of [before, after]) {
        if (vip === undefined || vip.isRecord) continue;
        if (vip.podKey !== '') touch(vip.podKey);
        // It may name another claim than the mark on the ENI, which decides: it was edited.
        for (const { decoded } of necs.byIndex(NECS_BY_MARKED_IP, vip.ip)) {
          const holder = readMarkOf(decoded?.status, vip.ip);
          if (holder !== undefined && holder !== vip.podKey) touch(holder);
        }
      }
    }),
    necs.subscribe(({ key, before, after }) => {
      const [first, second] = [before?.decoded, after?.decoded];
      const keys = new Set([...readClaimKeys(first?.status), ...readClaimKeys(second?.status)]);
      for (const claim of keys) touch(claim);
      const marked = new Set(readMarkedIps(second?.status));
      views.freed.noteFreed(readMarkedIps(first?.status).filter((ip) => !marked.has(ip)));
      const isOther =
        first?.spec?.enableStaticIP !== second?.spec?.enableStaticIP || first?.status?.zone !== second?.status?.zone;
      if (isOther) enqueueClaimsOf(key);
    }),
    nodes.subscribe(({ key, before, after }) => {
      views.noteNode(key);
      if (before?.isReady !== after?.isReady) enqueueClaimsOf(key);
    }),
    subnets.subscribe(({ mayUnblock }) => {
      if (mayUnblock) enqueueWaiting();
    }),
    vpcEnis.subscribe(({ before, after }) => {
      for (const one of [before, after]) if (one !== undefined && one.claim !== '') touch(one.claim);
    }),
    followRules(term, touch, signal),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/** Pods are checked at most once in this time, however often rules change. */
const BATCH_MS = 1_000;

/**
 * Calls `touch` for the claims of Pods whose StaticIPConfig or Deployment may have changed: those of its namespace
 * alone, and only for changes that matter. The status of a Deployment changes often, and every user may write into
 * their own namespace.
 */
export function followRules(
  { config, pods, configs, deployments, clock }: ClaimsTerm,
  touch: (key: string) => void,
  signal: AbortSignal,
): () => void {
  const own = config.namespace;
  const changed = new Set<string>();
  const notify = (): void => {
    for (const pod of pods.values()) {
      const isAffected = pod.claimInfo !== undefined && (changed.has(pod.namespace) || changed.has(own));
      if (isAffected) touch(podKeyOf(pod));
    }
    changed.clear();
  };
  const note = (key: string): void => {
    const isFirst = changed.size === 0;
    changed.add(refOfKey(key).namespace);
    if (isFirst) clock.sleep(BATCH_MS, signal).then(notify, () => {});
  };
  const ends = [
    configs.subscribe(({ key, before, after }) => {
      if (!isDeepStrictEqual(before?.decoded?.spec, after?.decoded?.spec)) note(key);
    }),
    deployments?.subscribe(({ key, before, after }) => {
      if (before?.uid !== after?.uid || !isDeepStrictEqual(before?.selector, after?.selector)) note(key);
    }),
  ];
  return () => {
    for (const end of ends) end?.();
  };
}
