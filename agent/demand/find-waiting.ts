import type { Lease } from '../journal/lease.ts';
import type { PodRecord } from '../pods/pod-record.ts';

/** An ADD that found no address and waits for one. */
export type WaitingAdd = {
  readonly podNamespace: string;
  readonly podName: string;
  /** It waits for the address that is kept for it, and for no other. */
  readonly keepsAddress?: boolean;
};

/**
 * Counts who needs an address of the pool and has none: Pods that live on the node, and ADDs that wait; a Pod whose ADD
 * waits counts once. Those that keep their address need none. A Pod of the same name as one before it, which still has its
 * lease, is another. A lease that was found in the kernel, with nobody to tell whose it is, is known by its address. Pure.
 */
export function countWaiting(pods: Iterable<PodRecord>, leases: Iterable<Lease>, adds: Iterable<WaitingAdd>): number {
  const uids = new Set<string>();
  const namesWithoutUid = new Set<string>();
  const ipsWithoutName = new Set<string>();
  for (const { podUid, podNamespace, podName, addresses } of leases) {
    if (podUid !== '') uids.add(podUid);
    else if (podName !== '') namesWithoutUid.add(`${podNamespace}/${podName}`);
    else for (const { ip } of addresses) ipsWithoutName.add(ip);
  }
  const waiting = new Set<string>();
  for (const { namespace, name, uid, isAlive, ips, keepsAddress, direct } of pods) {
    const key = `${namespace}/${name}`;
    const hasLease = uids.has(uid) || namesWithoutUid.has(key) || ips.some((ip) => ipsWithoutName.has(ip));
    if (isAlive && keepsAddress !== true && direct === undefined && !hasLease) waiting.add(key);
  }
  let nameless = 0;
  for (const { podNamespace, podName, keepsAddress } of adds) {
    if (keepsAddress === true) continue;
    if (podName === '') nameless++;
    else waiting.add(`${podNamespace}/${podName}`);
  }
  return waiting.size + nameless;
}
