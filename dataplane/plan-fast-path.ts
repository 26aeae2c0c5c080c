import { tcpBeLiberal } from '../sysctl/sysctl-key.ts';
import { EMPTY_STATE, type FilterState, type FlowtableState, type HostState } from './desired.ts';
import { flowtableText } from './fast-path/flowtable.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from './network.ts';

/**
 * Plans what the fast path needs of the node beside its table of marks: a setting, and for `bpf` both programs on each shared ENI
 * and on the link of each Pod on one. Links of others, GlobalRoute Pods, exclusive ENIs and the primary interface have none.
 * For `flowtable` a table of its own with the same links and the primary interface, which translated packets leave by.
 */
export function planFastPath(node: NodeNetwork, enis: readonly EniNetwork[], pods: readonly PodNetwork[]): HostState {
  if (node.fastPath === undefined) return EMPTY_STATE;
  // Connection tracking sees only some packets of a flow: without this it takes later ones for invalid, since their
  // sequence numbers are beyond the window that it knows. The key comes with the module of connection tracking.
  const sysctls = [{ key: tcpBeLiberal(), value: '1', isOptional: true as const }];
  if (node.fastPath === 'flowtable') return { ...EMPTY_STATE, sysctls, flowtable: planFlowtable(node, enis, pods) };
  return { ...EMPTY_STATE, sysctls, filters: [...enis.flatMap(eniFilters), ...pods.flatMap(podFilters)] };
}

function planFlowtable(
  { primary: { ifindex, ifname } }: NodeNetwork,
  enis: readonly EniNetwork[],
  pods: readonly PodNetwork[],
): FlowtableState {
  const shared = enis.filter(({ podIps }) => podIps === undefined);
  return {
    text: flowtableText(shared.map(({ table }) => table)),
    devices: [
      { ifindex, ifname },
      ...shared.map((eni) => ({ ifindex: eni.ifindex, ifname: eni.ifname })),
      ...pods.filter(isLinkUsed).map(({ hostVeth }) => ({ ifindex: hostVeth.ifindex ?? 0, ifname: hostVeth.name })),
    ],
  };
}

/** Reports whether the fast path uses a Pod's host link: one of a Pod on a shared ENI that exists, and whose ADD is done. */
function isLinkUsed({ kind, hostVeth, isNew }: PodNetwork): boolean {
  return kind === 'route-eni' && hostVeth.ifindex !== undefined && isNew !== true;
}

function eniFilters({ ifindex, ifname, podIps }: EniNetwork): readonly FilterState[] {
  // Links of Pods that another program wires are foreign: nothing could be learned there.
  return podIps === undefined ? linkFilters(ifindex, ifname) : [];
}

function podFilters(pod: PodNetwork): readonly FilterState[] {
  const { ifindex, name } = pod.hostVeth;
  return ifindex === undefined || !isLinkUsed(pod) ? [] : linkFilters(ifindex, name);
}

/** Reports whether a new Pod's link gets the place of its traffic filters before it is up. */
export function getsFilterPlace({ fastPath }: NodeNetwork, { kind, filterPlace }: PodNetwork): boolean {
  return fastPath === 'bpf' && kind === 'route-eni' && filterPlace === true;
}

/** Returns the filters that a link has for the fast path. */
export function linkFilters(ifindex: number, ifname: string): readonly FilterState[] {
  return [
    { ifindex, ifname, direction: 'ingress', program: 'fast' },
    { ifindex, ifname, direction: 'egress', program: 'learn' },
  ];
}
