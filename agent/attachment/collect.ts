import type { SandboxView } from '../cri/sandbox-view.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { PodView } from '../pods/pod-view.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import { decideCollect, decideVeto } from './decide-collect.ts';
import { detachKey } from './detach.ts';

/**
 * Releases every lease of `network` that the runtime does not list as valid (CNI GC) and whose namespace is gone. Returns
 * how many it released and how many failed. Attachments made since the call began are not in the list and are left
 * alone, and so is a Pod that lives: another runtime that reads our configuration lists none of the Pods of kubelet's.
 */
export async function collectInvalid(
  deps: UseCaseDeps,
  network: string,
  valid: readonly { readonly containerId: string; readonly ifName: string }[],
): Promise<{ readonly released: number; readonly failed: number }> {
  const startedMs = deps.clock.monotonicMs();
  const startedAtMs = deps.clock.bootMs();
  const validKeys = new Set(valid.map(leaseKey));
  // An adopted lease does not know its network; the list has every live sandbox, so the lease may be compared with it
  // too.
  const invalid = [...deps.state.leases.values()]
    .filter((lease) => (lease.network === network || lease.network === '') && lease.createdAtMs < startedAtMs)
    .filter((lease) => !validKeys.has(leaseKey(lease)));
  const living = invalid.filter((lease) => isAlive(deps, lease)).map(leaseKey);
  if (living.length > 0) deps.log.warn('GC lists no attachments of Pods that live: leases kept', { keys: living });
  const livingKeys = new Set(living);
  const deadKeys = invalid.map(leaseKey).filter((key) => !livingKeys.has(key));
  const outcome = await releaseAll(deps, deadKeys, startedAtMs);
  deps.metrics.requests.observeMs(
    { verb: 'gc', code: outcome.failed > 0 ? 1 : 0 },
    deps.clock.monotonicMs() - startedMs,
  );
  return outcome;
}

/**
 * Releases leases whose sandbox the runtime no longer has. When the runtime does not answer nothing is released, and
 * the metric shows it. Never throws.
 * @param pods Pods of the API server: they may retain a lease, never end one. Ignored when absent or not fresh.
 */
export async function collectOrphans(
  deps: UseCaseDeps,
  view: SandboxView,
  signal: AbortSignal,
  pods?: PodView,
): Promise<number> {
  try {
    const listedAtMs = deps.clock.bootMs();
    const sandboxes = await view.list(signal);
    deps.metrics.criReachable.set(1);
    const leases = [...deps.state.leases.values()].filter(({ state }) => state !== 'releasing');
    const { orphans, unlisted } = decideCollect(leases, sandboxes, listedAtMs, (lease) => isAlive(deps, lease));
    reportUnlisted(deps, unlisted, sandboxes.length);
    const { released } = await releaseAll(deps, withoutVetoed(deps, orphans, pods), listedAtMs);
    return released;
  } catch (error) {
    deps.metrics.criReachable.set(0);
    deps.log.warn('container runtime not reachable, nothing is collected', { error });
    return 0;
  }
}

/**
 * Reports whether the namespace of a lease lives. Its link is the strongest sign: the kernel deletes a veth with either of
 * its namespaces, whatever name that has. Of an adopted lease the path may not be known.
 */
function isAlive({ state, wiring, sandboxes }: UseCaseDeps, lease: Lease): boolean {
  const pod = state.podNetwork(lease);
  if (pod !== undefined && wiring.isLinked(pod)) return true;
  if (lease.netns === '') return lease.plugin === 'ipam';
  return !sandboxes.isAbsent(lease.netns);
}

function reportUnlisted({ state, log }: UseCaseDeps, unlisted: readonly LeaseKey[], sandboxCount: number): void {
  const added = unlisted.filter((key) => !state.unlisted.has(key));
  state.unlisted = new Set(unlisted);
  if (added.length === 0) return;
  log.warn('Pods live whose sandbox no container runtime lists: leases kept; see --cri-socket', {
    keys: added,
    listed: sandboxCount,
  });
}

function withoutVetoed(
  deps: UseCaseDeps,
  orphans: readonly LeaseKey[],
  pods: PodView | undefined,
): readonly LeaseKey[] {
  const all = [...deps.state.leases.values()];
  const known = pods?.isFresh() === true ? [...pods.pods()] : [];
  const vetoed = new Set(decideVeto(orphans, all, known));
  const released = orphans.filter((key) => !vetoed.has(key));
  if (vetoed.size > 0) {
    deps.log.warn('sandbox is gone, and its Pod runs by the API server: leases kept', { keys: [...vetoed] });
  }
  if (released.length > 0) deps.log.info('releasing leases whose sandbox is gone', { keys: released });
  return released;
}

async function releaseAll(
  deps: UseCaseDeps,
  keys: readonly LeaseKey[],
  beforeMs: number,
): Promise<{ readonly released: number; readonly failed: number }> {
  const failures = await Promise.all(
    keys.map((key) => detachKey(deps, key, ({ createdAtMs }) => createdAtMs < beforeMs, 'gc')),
  );
  const failed = failures.filter((failure) => failure !== undefined).length;
  const released = keys.length - failed;
  if (released > 0) deps.metrics.collected.inc(released);
  return { released, failed };
}
