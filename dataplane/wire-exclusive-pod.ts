import type { NetnsRef } from '../netlink/link-message.ts';
import { UndoStack } from '../runtime/undo-stack.ts';
import { applyOperations } from './apply.ts';
import { EMPTY_STATE, type HostState } from './desired.ts';
import { diffHost } from './diff.ts';
import { moveNicToPod, type OwnedNic, returnNic } from './exclusive-nic.ts';
import { findNic } from './find-nic.ts';
import type { NodeKernel } from './kernel.ts';
import { makeVeth } from './make-veth.ts';
import type { EniPodNetwork, NodeNetwork } from './network.ts';
import { observeNetns } from './observe.ts';
import { renderOperation } from './operation.ts';
import { type ExclusiveEnds, planExclusivePod } from './plan-exclusive-pod.ts';
import { planInside } from './read-inside.ts';
import { type UnwiredPod, unwirePod } from './unwire-pod.ts';
import { WireError } from './wire-error.ts';
import { doPhases, type PodWiring, toWireError, type WiredPod } from './wire-pod.ts';
import { wiringPhases } from './wiring-steps.ts';

/** As `WiredPod`, with the indexes of both interfaces in the Pod. */
type WiredExclusivePod = WiredPod & { readonly ends: ExclusiveEnds };

/**
 * Wires a Pod with an exclusive ENI: its interface, then the side link, settings, the Pod's side, the host's side. On
 * any failure everything is undone, and the interface is returned.
 * @throws WireError
 */
export function wireExclusivePod(
  kernel: Pick<NodeKernel, 'rtnetlink' | 'sysctl' | 'enter'>,
  hostNetns: NetnsRef,
  podNetns: NetnsRef,
  { node, pod, fallbackName }: PodWiring<EniPodNetwork>,
): WiredExclusivePod {
  const { rtnetlink } = kernel;
  const undo = new UndoStack();
  try {
    const owned = ownedNic(pod);
    using inPod = kernel.enter(podNetns);
    // Pushed first: a move that failed halfway is undone as well.
    undo.push(`interface of MAC ${owned.nic.mac}`, () => {
      returnNic(kernel, hostNetns, podNetns, owned);
    });
    const nic = moveNicToPod(rtnetlink, inPod.rtnetlink, podNetns, owned);
    const { ifindex, name } = makeVeth(rtnetlink, inPod.rtnetlink, podNetns, { pod, fallbackName });
    undo.push(`link ${name}`, () => rtnetlink.link.delete({ ifindex }));
    const side = inPod.rtnetlink.link.get({ ifname: pod.podVeth.name })?.ifindex;
    if (side === undefined) throw new WireError('LINK_GONE', `${pod.podVeth.name} vanished while it was being wired`);
    const ends = { nic, side };
    const plan = planExclusivePod(node, { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }, ends);
    doPhases(wiringPhases(plan), { host: kernel, pod: inPod, containerId: pod.key.containerId }, undo);
    return { hostIfindex: ifindex, hostName: name, podIfindex: side, ends };
  } catch (cause) {
    const failures = undo.unwind();
    const error = toWireError(cause);
    error.leftBehind = failures.map(({ what }) => what);
    throw error;
  }
}

/** As `UnwiredPod`; `nic` tells whether the interface is back and released in the host's namespace. */
type UnwiredExclusivePod = UnwiredPod & { readonly nic: 'back' | 'missing' };

/**
 * Unwires a Pod with an exclusive ENI: rules and routes, then the interface, by its MAC, from whichever of the two
 * namespaces has it; then the side link. Objects that do not exist any more count as success. @throws NetlinkError
 * @param podNetns absent: the namespace is deleted.
 */
export function unwireExclusivePod(
  kernel: Pick<NodeKernel, 'rtnetlink' | 'enter'>,
  node: NodeNetwork,
  pod: EniPodNetwork,
  { hostNetns, podNetns }: { readonly hostNetns: NetnsRef; readonly podNetns: NetnsRef | undefined },
): UnwiredExclusivePod {
  const unwired = unwirePod(kernel, node, pod);
  try {
    return { ...unwired, nic: returnNic(kernel, hostNetns, podNetns, ownedNic(pod)) };
  } catch (error) {
    // The caller gets this error and does not await `finished`, so mark its rejection as handled.
    unwired.finished.catch(() => {});
    throw error;
  }
}

function ownedNic({ key, nic }: EniPodNetwork): OwnedNic {
  if (nic === undefined) throw new WireError('KERNEL', `the lease ${key.containerId}/${key.ifName} names no interface`);
  return { key, nic };
}

/**
 * Makes the routes inside a Pod with an exclusive ENI equal to its plan: what leads through the node changes with the
 * ranges of Services and of bridge Pods. Routes of others stay. Idempotent.
 * @returns the changes, as command lines; empty when there was none, when the Pod is not wired (yet, or any more), or when a
 * sandbox took its addresses and routes out
 * @throws NetlinkError when the namespace cannot be read; ApplyError when a change is refused
 */
export async function updateExclusiveRoutes(
  { nft, enter }: Pick<NodeKernel, 'nft' | 'enter'>,
  podNetns: NetnsRef,
  node: NodeNetwork,
  pod: EniPodNetwork,
  handler?: () => Promise<string | undefined>,
): Promise<readonly string[]> {
  using inPod = enter(podNetns);
  const { rtnetlink, sysctl } = inPod;
  const nic = pod.nic === undefined ? undefined : findNic(rtnetlink.link.list(), pod.nic.mac);
  const side = rtnetlink.link.get({ ifname: pod.podVeth.name });
  if (nic === undefined || side === undefined || side.address !== pod.podVeth.mac) return [];
  const plan = planExclusivePod(node, pod, { nic: nic.ifindex, side: side.ifindex }).pod;
  if ((await planInside(inPod, plan, handler)) !== plan) return [];
  const desired: HostState = { ...EMPTY_STATE, routes: plan.routes };
  const kernel = { rtnetlink, sysctl, nft };
  const { operations } = diffHost(desired, observeNetns(kernel, desired));
  const ofRoutes = operations.filter(({ kind }) => kind === 'replace-route' || kind === 'delete-route');
  const { done } = await applyOperations(kernel, ofRoutes);
  return done.map((operation) => renderOperation(operation));
}
