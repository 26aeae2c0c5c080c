import type { Netns } from '../netlink/netns.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { openSysctl } from '../sysctl/sysctl.ts';
import { applyOperations } from './apply.ts';
import { EMPTY_STATE, type HostState } from './desired.ts';
import { diffHost } from './diff.ts';
import { findNic } from './exclusive-nic.ts';
import type { Kernel } from './kernel.ts';
import type { EniPodNetwork, NodeNetwork } from './network.ts';
import { observeNetns } from './observe.ts';
import { renderOperation } from './operation.ts';
import { planExclusivePod } from './plan-exclusive-pod.ts';
import { planInside } from './read-inside.ts';

/**
 * Makes the routes inside a Pod with an exclusive ENI equal to its plan: what leads through the node changes with the
 * ranges of Services and of bridge Pods. Routes of others stay. Idempotent.
 * @returns the changes, as command lines; empty when there was none, when the Pod is not wired (yet, or any more), or when a
 * sandbox took its addresses and routes out
 * @throws NetlinkError when the namespace cannot be read; ApplyError when a change is refused
 */
export async function updateExclusiveRoutes(
  { nft }: Pick<Kernel, 'nft'>,
  podNetns: Netns,
  node: NodeNetwork,
  pod: EniPodNetwork,
  handler?: () => Promise<string | undefined>,
): Promise<readonly string[]> {
  using rtnetlink = openRtnetlinkIn(podNetns);
  const nic = pod.nic === undefined ? undefined : findNic(rtnetlink.link.list(), pod.nic.mac);
  const side = rtnetlink.link.get({ ifname: pod.podVeth.name });
  if (nic === undefined || side === undefined || side.address !== pod.podVeth.mac) return [];
  const plan = planExclusivePod(node, pod, { nic: nic.ifindex, side: side.ifindex }).pod;
  if ((await planInside(podNetns, plan, handler)) !== plan) return [];
  const desired: HostState = { ...EMPTY_STATE, routes: plan.routes };
  const kernel = { rtnetlink, sysctl: openSysctl(podNetns), nft };
  const { operations } = diffHost(desired, observeNetns(kernel, desired));
  const ofRoutes = operations.filter(({ kind }) => kind === 'replace-route' || kind === 'delete-route');
  const { done } = await applyOperations(kernel, ofRoutes);
  return done.map((operation) => renderOperation(operation));
}
