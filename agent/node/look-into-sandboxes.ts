import { readdirSync } from 'node:fs';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { type Netns, openNetns } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { PeerEvidence, VethEvidence } from '../adopt/kernel-evidence.ts';
import { resolveHostPath } from '../host-path.ts';
import { type LeaseKey, leaseKey } from '../lease.ts';

/** Where runtimes and `ip netns` keep names of namespaces. */
const NETNS_FOLDER = '/run/netns';

/** What looking into sandboxes needs. */
export type LookDeps = {
  readonly hostRoot: string;
  readonly openRtnetlinkIn: (netns: Netns) => Rtnetlink;
};

/**
 * Looks into network namespaces for the Pod ends of host veths: those that the runtime named, then those in `/run/netns`.
 * A Pod end has the interface's name and points at the host end's index. Reads only.
 */
export function lookIntoSandboxes(
  deps: LookDeps,
  veths: readonly VethEvidence[],
  netnsPaths: readonly string[],
): ReadonlyMap<LeaseKey, PeerEvidence> {
  const found = new Map<LeaseKey, PeerEvidence>();
  for (const path of new Set([...netnsPaths, ...namedNetns(deps.hostRoot)])) {
    if (found.size === veths.length) break;
    for (const [key, peer] of peersIn(deps, path, veths)) if (!found.has(key)) found.set(key, peer);
  }
  return found;
}

function peersIn(
  { hostRoot, openRtnetlinkIn }: LookDeps,
  path: string,
  veths: readonly VethEvidence[],
): readonly (readonly [LeaseKey, PeerEvidence])[] {
  try {
    using netns = openNetns(resolveHostPath(hostRoot, path));
    using rtnetlink = openRtnetlinkIn(netns);
    const links = rtnetlink.link.list().filter(({ kind }) => kind === 'veth');
    return veths.flatMap((veth) => {
      const link = links.find((candidate) => isPeer(candidate, veth));
      if (link === undefined) return [];
      const ips = rtnetlink.address
        .list({ ifindex: link.ifindex })
        .filter(({ scope }) => scope === RT_SCOPE_UNIVERSE)
        .map(({ local, address }) => local ?? address);
      return [[leaseKey(veth.containerId, veth.ifName), { netns: path, podMac: link.address ?? '', ips }] as const];
    });
  } catch {
    // A namespace may die while we look; what cannot be read is no evidence.
    return [];
  }
}

const RT_SCOPE_UNIVERSE = 0;

function isPeer(link: LinkMessage, veth: VethEvidence): boolean {
  return link.ifname === veth.ifName && link.link === veth.ifindex;
}

function namedNetns(hostRoot: string): readonly string[] {
  try {
    return readdirSync(resolveHostPath(hostRoot, NETNS_FOLDER)).map((name) => `${NETNS_FOLDER}/${name}`);
  } catch {
    return [];
  }
}
