import { type ControllerObserver, runController } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { WorkQueue } from '../../kube/work-queue.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import { PODS_BY_NODE, type PodFacts, podKeyOf } from '../cache/pod-facts.ts';
import type { ClaimFacts, VipFacts } from '../cache/record-facts.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import { NECS_BY_MARKED_IP } from './build-claim-view.ts';
import { ClaimReconciler, type ClaimReconcilerDeps } from './claim-reconciler.ts';
import { followRules, type RulesDeps } from './follow-rules.ts';
import { readClaimKeys, readMarkOf } from './read-claim-locations.ts';

/** Dependencies of the claims controller, once informers exist. */
type RunClaimsDeps = Omit<ClaimReconcilerDeps, 'claims' | 'vips'> &
  Omit<RulesDeps, 'pods'> & {
    readonly queue: WorkQueue;
    readonly pods: Informer<PodFacts>;
    readonly nodes: Informer<NodeEntry>;
    readonly necs: Informer<NecEntry>;
    readonly vips: Informer<VipFacts>;
    readonly claims: Informer<ClaimFacts>;
    readonly subnets: Pick<Subnets, 'isReady' | 'subscribe'>;
    readonly observer?: ControllerObserver;
  };

/** A reconcile of a claim makes one or two writes; the rate of calls limits the throughput. */
const WORKERS = 16;
/** Retry while the subnets were not described. */
const STARTING_MS = 500;

/**
 * Reconciles the claims of all Pods until aborted, once every informer has its first list. For the leader only. The
 * requests are complete when each claim that existed at the start was reconciled once.
 */
export async function runClaims(deps: RunClaimsDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, queue, pods, nodes, necs, vips, claims, configs, deployments, observer } = deps;
  await Promise.all([pods, nodes, necs, vips, claims, configs, deployments].map((one) => one?.synced(signal)));
  while (!deps.subnets.isReady) await clock.sleep(STARTING_MS, signal);
  for (const name of nodes.keys()) deps.views.noteNode(name);
  const reconciler = new ClaimReconciler(deps);
  const unsubscribe = followChanges(deps, (key) => queue.add(key), signal);
  const first = deps.views.keys();
  const left = new Set(first);
  const markReconciled = (key: string): void => {
    left.delete(key);
    if (left.size > 0 || deps.requests.isComplete) return;
    deps.requests.complete();
    for (const name of necs.keys()) if (hasMarks(necs.get(name))) deps.enqueueNode(name);
    for (const name of nodesOf(deps, first)) deps.enqueueNode(name);
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
    await runController(
      { name: 'claims', queue, workers: WORKERS, reconcile, clock, log, ...(observer && { observer }) },
      signal,
    );
  } finally {
    unsubscribe();
    queue.close();
  }
}

function hasMarks(entry: NecEntry | undefined): boolean {
  return readClaimKeys(entry?.decoded?.status).length > 0;
}

function nodesOf({ pods }: RunClaimsDeps, keys: ReadonlySet<string>): ReadonlySet<string> {
  const names = [...keys].flatMap((key) => pods.get(key)?.nodeName ?? []);
  return new Set(names.filter((name) => name !== ''));
}

const SETTLED_PHASES: readonly (string | undefined)[] = ['Bound', 'Retained'];

/** Calls `touch` for each claim whose decision may have changed. */
function followChanges(deps: RunClaimsDeps, touch: (key: string) => void, signal: AbortSignal): () => void {
  const { pods, nodes, necs, vips, claims, subnets, views } = deps;
  // Changes of subnets matter only to claims without an address, which are few.
  const enqueueWaiting = (): void => {
    for (const { key, staticObject } of claims.values()) {
      if (staticObject !== undefined && !SETTLED_PHASES.includes(staticObject.decoded?.status?.phase)) touch(key);
    }
  };
  const enqueueClaimsOf = (name: string): void => {
    for (const key of readClaimKeys(necs.get(name)?.decoded?.status)) touch(key);
    for (const pod of pods.byIndex(PODS_BY_NODE, name)) if (pod.claimInfo !== undefined) touch(podKeyOf(pod));
  };
  const ends = [
    pods.subscribe(({ key, before, after }) => {
      const isConcerned = [before, after].some((pod) => pod?.claimInfo !== undefined);
      if (isConcerned || claims.get(key)?.staticObject !== undefined) touch(key);
    }),
    claims.subscribe(({ key, before, after }) => {
      if (before?.staticObject !== undefined || after?.staticObject !== undefined) return touch(key);
      // A record of a Pod with the same name, without a static address, would conflict with the claim.
      if (pods.get(key)?.claimInfo !== undefined) touch(key);
    }),
    vips.subscribe(({ before, after }) => {
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
    followRules(deps, touch, signal),
  ];
  return () => {
    for (const end of ends) end();
  };
}
