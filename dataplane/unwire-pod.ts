import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { decideTakenName } from './host-veth-name.ts';
import type { Kernel } from './kernel.ts';
import { findHostVeths } from './make-veth.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { planRemoval, removalsOf } from './plan-removal.ts';
import { toRequests } from './to-request.ts';

/** The result of unwiring. The address may be used again only after `finished` has settled. */
export type UnwiredPod = {
  /** Whether a host link of this attachment was found. */
  readonly hadLink: boolean;
  /** Settles when the links are deleted. @throws NetlinkError */
  readonly finished: Promise<void>;
};

/**
 * Unwires one Pod by its lease, never by names. A link is identified by its ifindex, and only while it has our alias or
 * MAC, because the kernel may have given the index to another link. Routes and rules are deleted when this returns. The
 * links are deleted in the background, as the kernel needs 25 ms for a veth. Flows that the fast path learned end before that.
 * Objects that do not exist any more count
 * as success; the Pod's namespace is not needed.
 * @throws NetlinkError for any failure other than absence, BpfError
 */
export function unwirePod(kernel: Pick<Kernel, 'rtnetlink' | 'flows'>, node: NodeNetwork, pod: PodNetwork): UnwiredPod {
  const { rtnetlink } = kernel;
  const ifindexes = pod.kind === 'ipam' ? [] : findPodLinks(rtnetlink, pod);
  const requests = removalsOf(planRemoval(node, pod, ifindexes)).flatMap(toRequests);
  for (const outcome of rtnetlink.execute(requests)) {
    if (outcome.kind === 'error' && !isAbsence(outcome.error)) throw outcome.error;
  }
  kernel.flows?.forgetFlows();
  return { hadLink: ifindexes.length > 0, finished: deleteLinks(rtnetlink, ifindexes) };
}

/** Finds the host ends of a Pod's link: one, none, or leftovers of an interrupted wiring. */
export function findPodLinks(rtnetlink: Rtnetlink, pod: PodNetwork): readonly number[] {
  const { ifindex } = pod.hostVeth;
  // A lease without an index belongs to an interrupted wiring; then all links are searched for this attachment's alias
  // or MAC.
  if (ifindex === undefined) return findHostVeths(rtnetlink, pod).map((link) => link.ifindex);
  const found = rtnetlink.link.get({ ifindex });
  if (found === undefined) return [];
  const { ifalias, address, kind } = found;
  const marks = {
    ...(kind !== undefined && { kind }),
    ...(ifalias !== undefined && { ifalias }),
    ...(address !== undefined && { mac: address }),
  };
  return decideTakenName(marks, { alias: pod.alias, mac: pod.hostVeth.mac }) === 'replace' ? [ifindex] : [];
}

async function deleteLinks(rtnetlink: Rtnetlink, ifindexes: readonly number[]): Promise<void> {
  await Promise.all(
    ifindexes.map(async (ifindex) => {
      try {
        await rtnetlink.link.deleteInBackground(ifindex);
      } catch (error) {
        // It was deleted with the Pod's namespace.
        if (!isAbsence(error)) throw error;
      }
    }),
  );
}

function isAbsence(error: unknown): boolean {
  return isNetlinkError(error, 'ENOENT', 'ESRCH', 'ENODEV', 'EAFNOSUPPORT');
}
