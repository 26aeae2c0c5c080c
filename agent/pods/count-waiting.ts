import type { Lease } from '../journal/lease.ts';
import type { KubePod } from './pod-record.ts';

/** An ADD that waits for an address. */
export type WaitingAdd = {
  readonly podNamespace: string;
  readonly podName: string;
  /** True when it waits for its Pod's static IP; it takes no other address. */
  readonly isStatic?: boolean;
};

/**
 * Counts who needs an address of the pool and has none: live Pods of the node, and waiting ADDs; a Pod whose ADD waits
 * counts once. Pods with a static IP do not count. Leases match Pods by uid: a Pod is not served by the lease of an
 * earlier Pod of its name. A lease without uid matches by name, and one without a name (adopted from the kernel) by
 * address.
 */
export function countWaiting(pods: Iterable<KubePod>, leases: Iterable<Lease>, adds: Iterable<WaitingAdd>): number {
  const uids = new Set<string>();
  const namesWithoutUid = new Set<string>();
  const ipsWithoutName = new Set<string>();
  for (const { podUid, podNamespace, podName, addresses } of leases) {
    if (podUid !== '') uids.add(podUid);
    else if (podName !== '') namesWithoutUid.add(`${podNamespace}/${podName}`);
    else for (const { ip } of addresses) ipsWithoutName.add(ip);
  }
  const waiting = new Set<string>();
  for (const pod of pods) {
    const { namespace, name, uid, isAlive, ips, isStatic } = pod;
    const key = `${namespace}/${name}`;
    const hasLease = uids.has(uid) || namesWithoutUid.has(key) || ips.some((ip) => ipsWithoutName.has(ip));
    if (isAlive && isStatic !== true && sharesEni(pod) && !hasLease) waiting.add(key);
  }
  let nameless = 0;
  for (const { podNamespace, podName, isStatic } of adds) {
    if (isStatic === true) continue;
    if (podName === '') nameless++;
    else waiting.add(`${podNamespace}/${podName}`);
  }
  return waiting.size + nameless;
}

/** Tells whether a Pod gets an address of a shared ENI: not a whole ENI, not the bridge, and nothing by a wrong annotation. */
function sharesEni({ direct, network, networkFault }: KubePod): boolean {
  return direct === undefined && network !== 'bridge' && networkFault === undefined;
}
