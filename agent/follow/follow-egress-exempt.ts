import type { Lease } from '../journal/lease.ts';
import type { NodeRecord } from '../journal/node-record.ts';
import type { KubePod } from '../pods/kube-pod.ts';
import type { PodView } from '../pods/pod-view.ts';
import type { RepairLoop } from '../repair/repair-loop.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts, Conntrack } from '../state/ports.ts';

/** Dependencies of following the Pods with EIPs. */
type EgressExemptDeps = Pick<AgentParts, 'state' | 'log'> & {
  readonly pods: Pick<PodView, 'find'>;
  readonly conntrack: Conntrack;
  readonly loop: Pick<RepairLoop, 'pass' | 'kick'>;
};

/** Poll interval, for changes of Pods and leases that were not notified. */
const POLL_MS = 60_000;

/**
 * Restores the exempt addresses of the last plan, if it is of this boot: they hold until the API server says otherwise.
 * Never throws.
 */
export function restoreEgressExempt(
  state: NodeState,
  last: Pick<NodeRecord, 'bootId' | 'node'> | undefined,
  bootId: string,
): void {
  if (last?.bootId === bootId) state.egressExempt = last.node.egressExempt ?? [];
}

/**
 * Exempts the addresses of Pods that request an EIP from `--egress=node`, until aborted. The nftables table is loaded
 * again when they change, and only then. Never rejects.
 */
export async function followEgressExempt(deps: EgressExemptDeps, signal: AbortSignal): Promise<void> {
  const { state, pods, log } = deps;
  while (!signal.aborted) {
    // Begin to wait before reading, so that a change during the update of the kernel leads to another pass.
    const changed = state.demandChanged.wait(POLL_MS, signal);
    const before = new Set(state.egressExempt);
    const podOf = (namespace: string, name: string) => pods.find(namespace, name);
    const exempt = findEgressExempt({ leases: state.leases.values(), podOf, before });
    if (exempt.join() !== state.egressExempt.join()) {
      state.egressExempt = exempt;
      log.info('addresses with an EIP, exempt from --egress=node', { exempt });
      await apply(
        deps,
        exempt.filter((ip) => !before.has(ip)),
      );
    }
    await changed;
  }
}

/**
 * Makes the kernel follow. A connection that began with the node's address would go on with it, through an ENI that
 * drops such packets: its tracking entry is deleted, but only once the kernel starts no other connection like it.
 */
async function apply({ conntrack, log, loop }: EgressExemptDeps, added: readonly string[]): Promise<void> {
  try {
    if ((await loop.pass(CAUSE)).isStale) loop.kick(CAUSE);
  } catch (error) {
    log.error('the exemption of addresses with an EIP is not applied yet', { error });
    loop.kick(CAUSE);
  }
  if (added.length > 0) await conntrack.flush(added);
}

const CAUSE = 'EIP';

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
