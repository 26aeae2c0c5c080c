import { linkGroupOf } from '../../dataplane/link-group.ts';
import type { EniPodNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { type ExclusiveEnds, planExclusivePod } from '../../dataplane/plan-exclusive-pod.ts';
import { getsFilterPlace } from '../../dataplane/plan-fast-path.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import { removalsOf } from '../../dataplane/plan-removal.ts';
import type { PodPlan } from '../../dataplane/plan-routed-pod.ts';
import { renderWiringStep, wiringPhases } from '../../dataplane/wiring-steps.ts';

/** The Pod's end of the veth pair, once it exists. */
type PodEnd = { readonly netns: string; readonly ifindex: number };

/**
 * Renders the wiring of a Pod as the command lines that a person would type, in the order in which they were done: the steps
 * are those that `wirePod` did.
 * @param end Absent for kind `ipam`, whose links are not ours.
 */
export function renderWiring(node: NodeNetwork, pod: PodNetwork, end: PodEnd | undefined): readonly string[] {
  const plan = planPod(node, pod, end?.ifindex);
  if (end === undefined) return wiringPhases(plan).flatMap(({ steps }) => steps.map(renderWiringStep));
  return [...renderVeth(node, pod, end.netns), ...renderPhases(plan, end.netns)];
}

/** Renders the wiring of a Pod with a whole ENI, likewise. */
export function renderExclusiveWiring(
  node: NodeNetwork,
  pod: EniPodNetwork,
  { netns, ends }: { readonly netns: string; readonly ends: ExclusiveEnds },
): readonly string[] {
  return [
    `ip link set dev ${pod.nic?.hostName ?? ''} netns ${netns} name ${pod.key.ifName}`,
    ...renderVeth(node, pod, netns),
    ...renderPhases(planExclusivePod(node, pod, ends), netns),
  ];
}

/** Renders the unwiring of a Pod. */
export function renderUnwiring(node: NodeNetwork, pod: PodNetwork): readonly string[] {
  const lines = removalsOf(planPod(node, pod).host).map(renderOperation);
  if (pod.kind === 'ipam') return lines;
  const back =
    pod.kind === 'bridge' || pod.nic === undefined
      ? []
      : [`ip link set dev ${pod.key.ifName} netns 1 name ${pod.nic.hostName} down # in the Pod`];
  return [...lines, ...back, `ip link del dev ${pod.hostVeth.name}`];
}

/** The pair is created in one request, with both ends in their namespaces. */
function renderVeth(node: NodeNetwork, pod: PodNetwork, netns: string): readonly string[] {
  const { hostVeth, podVeth, mtu } = pod;
  const master = pod.kind === 'bridge' && pod.wiring === 'bridge' ? ` master ${node.bridge?.name ?? ''}` : '';
  const add = (up: string): string =>
    `ip link add ${hostVeth.name} address ${hostVeth.mac} mtu ${mtu} group ${linkGroupOf(pod)}${master}${up} type veth` +
    ` peer name ${podVeth.name} address ${podVeth.mac} mtu ${mtu} netns ${netns}`;
  if (!getsFilterPlace(node, pod)) return [add(' up')];
  return [add(''), `tc qdisc add dev ${hostVeth.name} clsact`, `ip link set dev ${hostVeth.name} up`];
}

function renderPhases(plan: PodPlan, netns: string): readonly string[] {
  return wiringPhases(plan).flatMap(({ side, steps }) =>
    steps.map((step) => (side === 'pod' ? `nsenter --net=${netns} ` : '') + renderWiringStep(step)),
  );
}
