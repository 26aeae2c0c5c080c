import type { Lease } from '../journal/lease.ts';
import type { PodRecord } from '../pods/pod-record.ts';

/** What the answer hangs on. */
export type EgressFacts = {
  readonly leases: Iterable<Pick<Lease, 'podNamespace' | 'podName' | 'podUid' | 'addresses' | 'state'>>;
  /** What the API server said of a Pod; undefined when it did not say. */
  readonly podOf: (namespace: string, name: string) => PodRecord | undefined;
  /** Addresses that were exempt so far. */
  readonly before: ReadonlySet<string>;
};

/**
 * Finds the addresses of Pods that ask for an EIP: with `--egress=node` what they send leaves by their ENI all the same,
 * for the node's address is not theirs. Of a Pod of which nobody says anything it stays as it was; an address that no Pod
 * has is none. In order. Pure.
 */
export function findEgressExempt({ leases, podOf, before }: EgressFacts): readonly string[] {
  const exempt = [...leases].flatMap(({ podNamespace, podName, podUid, addresses, state }) => {
    if (state === 'releasing') return [];
    const pod = podOf(podNamespace, podName);
    const isSame = pod !== undefined && (podUid === '' || pod.uid === podUid);
    const ips = addresses.map(({ ip }) => ip);
    return isSame ? (pod.asksForEip === true ? ips : []) : ips.filter((ip) => before.has(ip));
  });
  return [...new Set(exempt)].sort();
}
