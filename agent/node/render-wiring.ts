import type { HostState, NetState } from '../../dataplane/desired.ts';
import type { NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { type DirectEnds, planDirectPod } from '../../dataplane/plan-direct-pod.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import { planSharedEniPod } from '../../dataplane/plan-shared-eni-pod.ts';

/** The Pod's end, once it is made. */
export type PodEnd = { readonly netns: string; readonly ifindex: number };

/**
 * Renders what wiring a Pod did as the lines that a person would type, in the order in which it happened. Pure.
 * @param end absent for kind `ipam`, whose links are not ours.
 */
export function renderWiring(node: NodeNetwork, pod: PodNetwork, end: PodEnd | undefined): readonly string[] {
  const plan = planSharedEniPod(node, pod, end?.ifindex);
  const host = operationsOf(plan.host).map(renderOperation);
  if (end === undefined) return host;
  const { hostVeth, podVeth, mtu, eniTable, alias } = pod;
  const inPod = `nsenter --net=${end.netns} `;
  return [
    `ip link add ${hostVeth.name} address ${hostVeth.mac} mtu ${mtu} group ${eniTable} up type veth` +
      ` peer name ${podVeth.name} address ${podVeth.mac} mtu ${mtu} netns ${end.netns}`,
    ...operationsOf(plan.pod).map((operation) => inPod + renderOperation(operation)),
    `ip link set dev ${hostVeth.name} alias ${alias}`,
    ...host,
  ];
}

/** Renders what giving a Pod a whole ENI did, likewise. Pure. */
export function renderDirectWiring(
  node: NodeNetwork,
  pod: PodNetwork,
  { netns, ends }: { readonly netns: string; readonly ends: DirectEnds },
): readonly string[] {
  const plan = planDirectPod(node, pod, ends);
  const { hostVeth, podVeth, key, mtu, eniTable, alias, nic } = pod;
  return [
    `ip link set dev ${nic?.hostName ?? ''} netns ${netns} name ${key.ifName}`,
    `ip link add ${hostVeth.name} address ${hostVeth.mac} mtu ${mtu} group ${eniTable} up type veth` +
      ` peer name ${podVeth.name} address ${podVeth.mac} mtu ${mtu} netns ${netns}`,
    ...operationsOf(plan.pod).map((operation) => `nsenter --net=${netns} ${renderOperation(operation)}`),
    `ip link set dev ${hostVeth.name} alias ${alias}`,
    ...operationsOf(plan.host).map(renderOperation),
  ];
}

/** Renders what unwiring a Pod did. Pure. */
export function renderUnwiring(node: NodeNetwork, pod: PodNetwork): readonly string[] {
  const { rules, routes } = planPod(node, pod).host;
  const operations: readonly Operation[] = [
    ...rules.map((rule) => ({ kind: 'delete-rule' as const, rule })),
    ...routes.map((route) => ({ kind: 'delete-route' as const, route })),
  ];
  const lines = operations.map(renderOperation);
  if (pod.kind === 'ipam') return lines;
  const back =
    pod.nic === undefined
      ? []
      : [`ip link set dev ${pod.key.ifName} netns 1 name ${pod.nic.hostName} down # in the Pod`];
  return [...lines, ...back, `ip link del dev ${pod.hostVeth.name}`];
}

function operationsOf(state: NetState | HostState): readonly Operation[] {
  return [
    ...state.sysctls.map(({ key, value }) => ({ kind: 'set-sysctl' as const, key, value, before: '' })),
    ...state.links
      .filter(({ group }) => group === undefined)
      .map(({ ifindex, ifname }) => ({ kind: 'set-link' as const, ifindex, ifname, change: { up: true }, before: {} })),
    ...state.addresses.map((address) => ({ kind: 'add-address' as const, address })),
    ...state.routes.map((route) => ({ kind: 'replace-route' as const, route })),
    ...state.neighs.map((neigh) => ({ kind: 'replace-neigh' as const, neigh })),
    ...state.rules.map((rule) => ({ kind: 'add-rule' as const, rule })),
  ];
}
