import { hostVethAlias } from '../../dataplane/host-veth-name.ts';
import { planBridgePodSide } from '../../dataplane/plan-bridge-pod.ts';
import { routeSpec } from '../../dataplane/to-request.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { bridgePodNetworkOf } from '../journal/pod-network.ts';
import type { Namespaces } from '../node/namespaces.ts';
import type { TakenPod } from './plan-takeover.ts';

/**
 * Makes the settings and the default route inside a Pod that is taken over as those of a Pod of ours, and gives its link
 * our alias, by which an agent without a journal finds it. The route is replaced in one step: no packet is without one.
 * Idempotent. @throws NetlinkError, SysctlError, NetnsError
 */
export function markTakenPod(
  { namespaces, host }: { readonly namespaces: Namespaces; readonly host: Rtnetlink },
  { lease, inPod }: TakenPod,
): void {
  const pod = bridgePodNetworkOf(lease);
  const { hostVeth } = lease;
  if (pod === undefined || hostVeth?.ifindex === undefined) return;
  using netns = namespaces.open(inPod.netns);
  using inside = namespaces.enter(netns);
  const { sysctls, routes } = planBridgePodSide(pod, inPod.ifindex);
  inside.sysctl.setAll(sysctls);
  for (const route of routes) inside.rtnetlink.route.replace(routeSpec(route));
  host.link.set({ ifindex: hostVeth.ifindex, ifalias: hostVethAlias(lease) });
}
