import type { CriSandbox } from '../cri/sandbox-view.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { PodRecord } from '../pods/pod-record.ts';

/** Minimum age of a lease that is collected: the runtime lists a sandbox only some time after its ADD began. */
export const COLLECT_GRACE_MS = 60_000;
/**
 * Age from which an unlisted sandbox counts as removed even if its netns exists. On a node under load a sandbox is
 * listed only after minutes. Kubelet gives a sandbox up after four.
 */
export const UNLISTED_GRACE_MS = 600_000;

/**
 * Decides which leases lost their sandbox. A sandbox that is NOTREADY may still get its DEL. While its netns exists its
 * traffic may go on, so no other Pod may get its address: it is released only when the netns is missing too. A sandbox
 * that is not listed at all was removed, and the runtime never DELs it again; or it is still being made, and its netns
 * exists.
 * @param nowMs Milliseconds since boot, as in leases.
 * @param isNetnsAbsent Tells whether the netns path of a lease names no netns any more.
 */
export function decideCollect(
  leases: readonly Lease[],
  sandboxes: readonly CriSandbox[],
  nowMs: number,
  isNetnsAbsent: (lease: Lease) => boolean,
): readonly LeaseKey[] {
  const stateById = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox.state]));
  const isOrphan = (lease: Lease): boolean => {
    const ageMs = nowMs - lease.createdAtMs;
    if (ageMs < COLLECT_GRACE_MS) return false;
    const state = stateById.get(lease.containerId);
    // Not a Pod of Kubernetes (`ctr`, `nerdctl`, cnitool): the CRI never lists it, so only its netns decides.
    const isOfCri = lease.podName !== '';
    if (state === undefined) return (isOfCri && ageMs >= UNLISTED_GRACE_MS) || isNetnsAbsent(lease);
    return state === 'not-ready' && isNetnsAbsent(lease);
  };
  return leases.filter(isOrphan).map((lease) => leaseKey(lease.containerId, lease.ifName));
}

/**
 * Decides which leases are retained although their sandbox seems removed: the API server's Pod of the same uid runs
 * with the lease's address, is not being deleted, and has no other sandbox here that could be the running one. A Pod
 * that is being deleted gets no sandbox any more, and finalizers or a dead kubelet may keep its object for ever.
 * @param orphans Keys of leases whose sandbox seems removed.
 */
export function decideVeto(
  orphans: readonly LeaseKey[],
  leases: readonly Lease[],
  pods: readonly PodRecord[],
): readonly LeaseKey[] {
  const running = pods.filter(({ isRunning, isAlive }) => isRunning && isAlive);
  const runningByUid = new Map(running.map((pod) => [pod.uid, pod]));
  const orphanKeys = new Set(orphans);
  const isOfPod = (lease: Lease, { podUid, podNamespace, podName }: Lease): boolean =>
    lease.podUid === podUid ||
    (lease.podUid === '' && lease.podNamespace === podNamespace && lease.podName === podName);
  return leases.flatMap((lease): readonly LeaseKey[] => {
    const key = leaseKey(lease.containerId, lease.ifName);
    if (!orphanKeys.has(key) || lease.podUid === '') return [];
    const pod = runningByUid.get(lease.podUid);
    if (pod === undefined || !lease.addresses.some(({ ip }) => pod.ips.includes(ip))) return [];
    const hasOther = leases.some((other) => {
      const isAnother = other.containerId !== lease.containerId && isOfPod(other, lease);
      return isAnother && !orphanKeys.has(leaseKey(other.containerId, other.ifName));
    });
    return hasOther ? [] : [key];
  });
}
