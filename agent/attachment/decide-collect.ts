import type { CriSandbox } from '../cri/sandbox-view.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { KubePod } from '../pods/kube-pod.ts';

/** Minimum age of a lease that is collected: the runtime lists a sandbox only some time after its ADD began. */
export const COLLECT_GRACE_MS = 60_000;
/** Age from which an unlisted sandbox is no longer in the making: kubelet gives one up after four minutes. */
export const UNLISTED_GRACE_MS = 600_000;

/** What garbage collection does with leases. */
type Collection = {
  /** Their sandbox is gone. */
  readonly orphans: readonly LeaseKey[];
  /** No runtime lists their sandbox, and it lives: the list is of another runtime, or lacks them. */
  readonly unlisted: readonly LeaseKey[];
};

/**
 * Decides which leases lost their sandbox: those whose namespace is gone, unless a runtime lists them as ready. A list alone
 * ends nothing. It may be of another runtime, stale, or of one that lost its state; and while the namespace lives its
 * traffic may go on, so no other Pod may get its address. ADR 0094.
 * @param nowMs Milliseconds since boot, as in leases.
 * @param isAlive Reports whether the namespace of a lease lives, by any sign.
 */
export function decideCollect(
  leases: readonly Lease[],
  sandboxes: readonly Pick<CriSandbox, 'id' | 'state'>[],
  nowMs: number,
  isAlive: (lease: Lease) => boolean,
): Collection {
  const stateById = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox.state]));
  const old = leases.filter(({ createdAtMs }) => nowMs - createdAtMs >= COLLECT_GRACE_MS);
  const [living, dead] = [old.filter(isAlive), old.filter((lease) => !isAlive(lease))];
  const orphans = dead.filter(({ containerId }) => stateById.get(containerId) !== 'ready');
  // Not a Pod of Kubernetes (`ctr`, `nerdctl`, cnitool): the CRI never lists it.
  const unlisted = living.filter(
    ({ containerId, podName, createdAtMs }) =>
      podName !== '' && nowMs - createdAtMs >= UNLISTED_GRACE_MS && !stateById.has(containerId),
  );
  return { orphans: orphans.map(leaseKey), unlisted: unlisted.map(leaseKey) };
}

/**
 * Decides which leases are retained although their sandbox seems removed: the API server's Pod of the same uid runs
 * with the lease's address, is not being deleted, and has no other sandbox here that could be the running one. A Pod
 * that is being deleted gets no sandbox any more, and finalizers or a dead kubelet may keep its object forever.
 * @param orphans Keys of leases whose sandbox seems removed.
 */
export function decideVeto(
  orphans: readonly LeaseKey[],
  leases: readonly Lease[],
  pods: readonly KubePod[],
): readonly LeaseKey[] {
  const running = pods.filter(({ isRunning, isAlive }) => isRunning && isAlive);
  const runningByUid = new Map(running.map((pod) => [pod.uid, pod]));
  const orphanKeys = new Set(orphans);
  const isOfPod = (lease: Lease, { podUid, podNamespace, podName }: Lease): boolean =>
    lease.podUid === podUid ||
    (lease.podUid === '' && lease.podNamespace === podNamespace && lease.podName === podName);
  return leases.flatMap((lease): readonly LeaseKey[] => {
    const key = leaseKey(lease);
    if (!orphanKeys.has(key) || lease.podUid === '') return [];
    const pod = runningByUid.get(lease.podUid);
    if (pod === undefined || !lease.addresses.some(({ ip }) => pod.ips.includes(ip))) return [];
    const hasOther = leases.some((other) => {
      const isAnother = other.containerId !== lease.containerId && isOfPod(other, lease);
      return isAnother && !orphanKeys.has(leaseKey(other));
    });
    return hasOther ? [] : [key];
  });
}
