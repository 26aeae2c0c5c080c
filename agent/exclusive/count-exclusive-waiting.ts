import type { Lease } from '../journal/lease.ts';
import type { WaitingAdd } from '../pods/count-waiting.ts';
import type { KubePod } from '../pods/pod-record.ts';

/**
 * Counts who needs a whole ENI of the pool and has none: live Pods of the node, and waiting ADDs; a Pod whose ADD waits
 * counts once. Pods that require an ENI with a claim do not count: ipamd finds them by itself.
 */
export function countExclusiveWaiting(
  pods: Iterable<KubePod>,
  leases: Iterable<Lease>,
  adds: Iterable<WaitingAdd>,
): number {
  const directLeases = [...leases].filter(({ plugin }) => plugin === 'direct-eni');
  const uids = new Set(directLeases.map(({ podUid }) => podUid));
  const names = new Set(
    directLeases.filter(({ podUid }) => podUid === '').map(({ podNamespace, podName }) => `${podNamespace}/${podName}`),
  );
  const waiting = new Set<string>();
  for (const { namespace, name, uid, isAlive, direct } of pods) {
    const key = `${namespace}/${name}`;
    if (isAlive && direct === 'pool' && !uids.has(uid) && !names.has(key)) waiting.add(key);
  }
  let nameless = 0;
  for (const { podNamespace, podName } of adds) {
    if (podName === '') nameless++;
    else waiting.add(`${podNamespace}/${podName}`);
  }
  return waiting.size + nameless;
}
