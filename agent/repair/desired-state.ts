import type { HostState } from '../../dataplane/desired.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { withoutTakenOver } from '../journal/taken-over.ts';
import type { HostLink } from '../node/host-link.ts';
import type { NodeState } from '../state/node-state.ts';
import { assignedIps } from './assigned-ips.ts';

/**
 * Plans what the kernel should hold now: the node in its rule mode, these ENIs, and the Pods that are wired by one of
 * these links. Changes nothing.
 */
export function desiredState(
  state: NodeState,
  node: NodeNetwork,
  enis: readonly EniNetwork[],
  links: readonly Pick<HostLink, 'ifindex'>[],
): HostState {
  const tables = new Set(enis.map(({ table }) => table));
  return planNode(
    { ...node, assignedIps: assignedIps(state) },
    enis,
    activePods(state, links).filter(
      (pod) => pod.kind === 'direct-eni' || pod.kind === 'bridge' || tables.has(pod.eniTable),
    ),
  );
}

/**
 * Lists the Pods whose kernel state should exist. A lease that is being made or ended is left to its use case. One
 * whose host link is missing (the sandbox died without a DEL) has nothing that could be repaired. An address that was
 * taken over belongs to another Pod: packets to it leave for the VPC, as from any other host.
 */
function activePods(state: NodeState, links: readonly Pick<HostLink, 'ifindex'>[]): readonly PodNetwork[] {
  const presentIfindexes = new Set(links.map(({ ifindex }) => ifindex));
  return [...state.leases].flatMap(([key, lease]) => {
    // The rest takes time: where one link is asked for, there are hundreds of other Pods.
    if (lease.plugin !== 'ipam' && !presentIfindexes.has(lease.hostVeth?.ifindex ?? 0)) return [];
    const isDesired = lease.state === 'active' || (lease.state === 'pending' && state.wired.has(key));
    const podNetwork = isDesired ? state.podNetwork(lease) : undefined;
    const pod = podNetwork === undefined ? undefined : withoutTakenOver(state.supply, key, podNetwork);
    if (pod === undefined) return [];
    return [lease.state === 'pending' || state.newLinks.has(key) ? { ...pod, isNew: true } : pod];
  });
}
