import type { Lease } from '../journal/lease.ts';
import type { KubePod } from '../pods/pod-record.ts';

/** Inputs of `findEgressExempt`. */
type EgressFacts = {
  readonly leases: Iterable<Pick<Lease, 'podNamespace' | 'podName' | 'podUid' | 'addresses' | 'state'>>;
  /** The Pod as the API server has it; undefined when it is not known. */
  readonly podOf: (namespace: string, name: string) => KubePod | undefined;
  /** Addresses that were exempt so far. */
  readonly before: ReadonlySet<string>;
};

/**
 * Finds the addresses of Pods that request an EIP: with `--egress=node` their packets still leave by their ENI, because
 * the node's address is not theirs. For a Pod that is not known the present state stays. An address without a lease is
 * never exempt. Sorted.
 */
export function findEgressExempt({ leases, podOf, before }: EgressFacts): readonly string[] {
  const exempt = [...leases].flatMap(({ podNamespace, podName, podUid, addresses, state }) => {
    if (state === 'releasing') return [];
    const pod = podOf(podNamespace, podName);
    const isSame = pod !== undefined && (podUid === '' || pod.uid === podUid);
    const ips = addresses.map(({ ip }) => ip);
    return isSame ? (pod.requestsEip === true ? ips : []) : ips.filter((ip) => before.has(ip));
  });
  return [...new Set(exempt)].sort();
}
