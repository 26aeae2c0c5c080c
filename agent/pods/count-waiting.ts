import type { Lease } from '../journal/lease.ts';
import type { KubePod } from './kube-pod.ts';

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
  const hasLease = ({ namespace, name, uid, ips }: KubePod): boolean =>
    uids.has(uid) || namesWithoutUid.has(`${namespace}/${name}`) || ips.some((ip) => ipsWithoutName.has(ip));
  return countPods(
    [...pods].filter((pod) => pod.isAlive && pod.isStatic !== true && sharesEni(pod) && !hasLease(pod)),
    [...adds].filter(({ isStatic }) => isStatic !== true),
  );
}

/**
 * Counts likewise who needs a whole ENI of the pool and has none. Pods that require an ENI with a claim do not count: ipamd
 * finds them by itself.
 */
export function countExclusiveWaiting(
  pods: Iterable<KubePod>,
  leases: Iterable<Lease>,
  adds: Iterable<WaitingAdd>,
): number {
  const exclusiveLeases = [...leases].filter(({ plugin }) => plugin === 'direct-eni');
  const uids = new Set(exclusiveLeases.map(({ podUid }) => podUid));
  const names = new Set(
    exclusiveLeases
      .filter(({ podUid }) => podUid === '')
      .map(({ podNamespace, podName }) => `${podNamespace}/${podName}`),
  );
  const hasLease = ({ namespace, name, uid }: KubePod): boolean => uids.has(uid) || names.has(`${namespace}/${name}`);
  return countPods(
    [...pods].filter((pod) => pod.isAlive && pod.direct === 'pool' && !hasLease(pod)),
    [...adds],
  );
}

/** A Pod whose ADD waits counts once; each ADD without a name counts by itself. */
function countPods(pods: readonly KubePod[], adds: readonly WaitingAdd[]): number {
  const named = adds.filter(({ podName }) => podName !== '');
  const waiting = new Set([
    ...pods.map(({ namespace, name }) => `${namespace}/${name}`),
    ...named.map(({ podNamespace, podName }) => `${podNamespace}/${podName}`),
  ]);
  return waiting.size + adds.length - named.length;
}

/** Reports whether a Pod gets an address of a shared ENI: not a whole ENI, not the bridge, and nothing by a wrong annotation. */
function sharesEni({ direct, network, networkFault }: KubePod): boolean {
  return direct === undefined && network !== 'bridge' && networkFault === undefined;
}
