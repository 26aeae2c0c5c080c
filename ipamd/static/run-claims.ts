import { type ControllerObserver, runController } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { WorkQueue } from '../../kube/work-queue.ts';
import type { NecEntry } from '../nec-cache.ts';
import type { NodeEntry } from '../nodes/node-entry.ts';
import { PODS_BY_NODE, type PodFacts, podKeyOf } from '../records/pod-facts.ts';
import type { ClaimFacts, VipFacts } from '../records/record-facts.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import { findClaimKeys } from './find-places.ts';
import { followRules, type RulesDeps } from './follow-rules.ts';
import { ClaimKeeper, type ClaimKeeperDeps } from './keep-claims.ts';

/** Dependencies of the claims controller, once informers exist. */
type RunClaimsDeps = Omit<ClaimKeeperDeps, 'claims' | 'vips'> &
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
const WORKERS = 8;
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
  for (const name of nodes.keys()) deps.eyes.noteNode(name);
  const keeper = new ClaimKeeper(deps);
  const unsubscribe = followChanges(deps, (key) => queue.add(key), signal);
  const first = deps.eyes.keys();
  const left = new Set(first);
  const pass = (key: string): void => {
    left.delete(key);
    if (left.size > 0 || deps.book.isComplete) return;
    deps.book.complete();
    for (const name of necs.keys()) if (hasMarks(necs.get(name))) deps.wakeNode(name);
    for (const name of nodesOf(deps, first)) deps.wakeNode(name);
  };
  for (const key of first) queue.add(key);
  if (left.size === 0) pass('');
  try {
    const reconcile = async (key: string, ended: AbortSignal) => {
      try {
        return await keeper.reconcile(key, ended);
      } finally {
        // A claim that fails has no requests: its marks stay unchanged, and no other claim waits for it.
        pass(key);
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
  return findClaimKeys(entry?.decoded?.status).length > 0;
}

function nodesOf({ pods }: RunClaimsDeps, keys: ReadonlySet<string>): ReadonlySet<string> {
  const names = [...keys].flatMap((key) => pods.get(key)?.nodeName ?? []);
  return new Set(names.filter((name) => name !== ''));
}

const AT_REST: readonly (string | undefined)[] = ['Bound', 'Retained'];

/** Calls `touch` for each claim whose decision may have changed. */
function followChanges(deps: RunClaimsDeps, touch: (key: string) => void, signal: AbortSignal): () => void {
  const { pods, nodes, necs, vips, claims, subnets, eyes } = deps;
  // Changes of subnets matter only to claims without an address, which are few.
  const whoWaits = (): void => {
    for (const { key, kept } of claims.values()) {
      if (kept !== undefined && !AT_REST.includes(kept.decoded?.status?.phase)) touch(key);
    }
  };
  const onNode = (name: string): void => {
    for (const key of findClaimKeys(necs.get(name)?.decoded?.status)) touch(key);
    for (const pod of pods.byIndex(PODS_BY_NODE, name)) if (pod.lasting !== undefined) touch(podKeyOf(pod));
  };
  const ends = [
    pods.subscribe(({ key, before, after }) => {
      const isConcerned = [before, after].some((pod) => pod?.lasting !== undefined);
      if (isConcerned || claims.get(key)?.kept !== undefined) touch(key);
    }),
    claims.subscribe(({ key, before, after }) => {
      if (before?.kept !== undefined || after?.kept !== undefined) return touch(key);
      // A record of a Pod with the same name, without a static address, would conflict with the claim.
      if (pods.get(key)?.lasting !== undefined) touch(key);
    }),
    vips.subscribe(({ before, after }) => {
      for (const vip of [before, after]) {
        if (vip !== undefined && !vip.isRecord && vip.podKey !== '') touch(vip.podKey);
      }
    }),
    necs.subscribe(({ key, before, after }) => {
      const [first, second] = [before?.decoded, after?.decoded];
      const keys = new Set([...findClaimKeys(first?.status), ...findClaimKeys(second?.status)]);
      for (const claim of keys) touch(claim);
      const isOther =
        first?.spec?.enableStaticIP !== second?.spec?.enableStaticIP || first?.status?.zone !== second?.status?.zone;
      if (isOther) onNode(key);
    }),
    nodes.subscribe(({ key, before, after }) => {
      eyes.noteNode(key);
      if (before?.isReady !== after?.isReady) onNode(key);
    }),
    subnets.subscribe(({ mayGoOn }) => {
      if (mayGoOn) whoWaits();
    }),
    followRules(deps, touch, signal),
  ];
  return () => {
    for (const end of ends) end();
  };
}
