import type { Netns } from '../netlink/netns.ts';
import type { Request } from '../netlink/request.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { UndoStack } from '../runtime/undo-stack.ts';
import { openSysctl } from '../sysctl/sysctl.ts';
import { lendNic, type OwnedNic, returnNic } from './direct-nic.ts';
import type { Kernel } from './kernel.ts';
import { makeVeth } from './make-veth.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { type DirectEnds, planDirectPod } from './plan-direct-pod.ts';
import { neighSpec } from './to-request.ts';
import { type UnwiredPod, unwirePod } from './unwire-pod.ts';
import { WireError } from './wire-error.ts';
import { addHostSide, addPodSide, type PodWiring, setSysctls, toWireError, type WiredPod } from './wire-pod.ts';

/** As `WiredPod`, with both interfaces in the Pod. */
export type WiredDirectPod = WiredPod & { readonly ends: DirectEnds };

/**
 * Gives a Pod an ENI as a whole: its interface, then the link beside it, settings, the Pod's side, the host's side. On any
 * failure what was made is taken back, and the interface with it.
 * @throws WireError
 */
export function wireDirectPod(
  kernel: Pick<Kernel, 'rtnetlink' | 'sysctl'>,
  hostNetns: Netns,
  podNetns: Netns,
  { node, pod, fallbackName }: PodWiring,
): WiredDirectPod {
  const { rtnetlink, sysctl } = kernel;
  const undo = new UndoStack();
  try {
    const owned = ownedNic(pod);
    using inPod = openRtnetlinkIn(podNetns);
    // Noted first: a move that failed half-way is taken back as well.
    undo.push(`interface of MAC ${owned.nic.mac}`, () => void returnNic(rtnetlink, hostNetns, podNetns, owned));
    const nic = lendNic(rtnetlink, inPod, podNetns, owned);
    const { ifindex, name } = makeVeth(rtnetlink, inPod, podNetns, { pod, fallbackName });
    undo.push(`link ${name}`, () => rtnetlink.link.delete({ ifindex }));
    const side = inPod.link.get({ ifname: pod.podVeth.name })?.ifindex;
    if (side === undefined) throw new WireError('LINK_GONE', `${pod.podVeth.name} vanished while it was being wired`);
    const ends = { nic, side };
    const plan = planDirectPod(node, { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }, ends);
    setSysctls(sysctl, plan.host.sysctls);
    setSysctls(openSysctl(podNetns), plan.pod.sysctls);
    addPodSide(inPod, plan.pod, pod.key.containerId);
    const alias: Request = { object: 'link', verb: 'set', spec: { ifindex, ifalias: pod.alias } };
    const neighs = plan.host.neighs.map(
      (neigh): Request => ({ object: 'neigh', verb: 'replace', spec: neighSpec(neigh) }),
    );
    addHostSide(rtnetlink, plan.host, [alias, ...neighs], undo);
    return { hostIfindex: ifindex, hostName: name, podIfindex: side, ends };
  } catch (cause) {
    const failures = undo.unwind();
    const error = toWireError(cause);
    error.leftBehind = failures.map(({ what }) => what);
    throw error;
  }
}

/** As `UnwiredPod`; `nic` tells whether the interface is at rest in the host's namespace now. */
export type UnwiredDirectPod = UnwiredPod & { readonly nic: 'back' | 'missing' };

/**
 * Takes an ENI back from a Pod: rules and routes, then the interface, by its MAC, from whichever of the two namespaces has
 * it; then the link beside it. Whatever is gone already is success. @throws NetlinkError
 * @param podNetns absent: it is gone.
 */
export function unwireDirectPod(
  kernel: Pick<Kernel, 'rtnetlink'>,
  node: NodeNetwork,
  pod: PodNetwork,
  { hostNetns, podNetns }: { readonly hostNetns: Netns; readonly podNetns: Netns | undefined },
): UnwiredDirectPod {
  const unwired = unwirePod(kernel, node, pod);
  try {
    return { ...unwired, nic: returnNic(kernel.rtnetlink, hostNetns, podNetns, ownedNic(pod)) };
  } catch (error) {
    // Nobody else waits for it then.
    unwired.finished.catch(() => {});
    throw error;
  }
}

function ownedNic({ key, nic }: PodNetwork): OwnedNic {
  if (nic === undefined) throw new WireError('KERNEL', `the lease ${key.containerId}/${key.ifName} names no interface`);
  return { key, nic };
}
