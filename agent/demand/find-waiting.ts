import type { Lease } from '../lease.ts';
import type { PodRecord } from '../pods/pod-record.ts';

/** An ADD that found no address and waits for one. */
export type WaitingAdd = { readonly podNamespace: string; readonly podName: string };

/**
 * Counts who needs an address and has none: Pods that live on the node, and ADDs that wait; a Pod whose ADD waits counts
 * once. A Pod of the same name as one before it, which still has its lease, is another. Pure.
 */
export function countWaiting(pods: Iterable<PodRecord>, leases: Iterable<Lease>, adds: Iterable<WaitingAdd>): number {
  const uids = new Set<string>();
  const namesWithoutUid = new Set<string>();
  for (const { podUid, podNamespace, podName } of leases) {
    if (podUid !== '') uids.add(podUid);
    else if (podName !== '') namesWithoutUid.add(`${podNamespace}/${podName}`);
  }
  const waiting = new Set<string>();
  for (const { namespace, name, uid, isAlive } of pods) {
    const key = `${namespace}/${name}`;
    if (isAlive && !uids.has(uid) && !namesWithoutUid.has(key)) waiting.add(key);
  }
  let nameless = 0;
  for (const { podNamespace, podName } of adds) {
    if (podName === '') nameless++;
    else waiting.add(`${podNamespace}/${podName}`);
  }
  return waiting.size + nameless;
}
