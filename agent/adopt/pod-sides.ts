import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { LeaseKey } from '../journal/lease.ts';
import type { NetnsEvidence } from '../node/bridge-evidence.ts';
import type { PeerEvidence, PodEnd, VethEvidence } from '../node/kernel-evidence.ts';
import type { PodNamespaces } from '../node/pod-namespaces.ts';
import { readPodEnds, readPodInterfaces } from '../node/read-pod-interfaces.ts';
import { readSandboxPeers } from '../node/read-sandbox-peers.ts';
import { markTakenPod } from './mark-taken-pod.ts';
import type { TakenPod } from './plan-takeover.ts';

/** What is inside the namespaces of Pods. A namespace that cannot be read is no evidence. */
export type PodSides = {
  /** Reads the veth interfaces with an IPv4 address in the namespaces that are named here, and in all that have a name. */
  interfaces(named: Iterable<string>): NetnsEvidence;
  /** Reads every veth there, with what adoption tells a Pod's end by. */
  ends(named: Iterable<string>): readonly PodEnd[];
  /** Finds the other ends of links. `named` has the namespaces that the runtime names, by container id. */
  peers(links: readonly VethEvidence[], named: ReadonlyMap<string, string>): ReadonlyMap<LeaseKey, PeerEvidence>;
  /** Makes a Pod's own side as that of a Pod of ours, and marks its link. @throws NetlinkError, SysctlError, NetnsError */
  mark(host: Rtnetlink, pod: TakenPod): void;
};

/** Opens what is inside the namespaces of a machine. */
export function openPodSides(namespaces: PodNamespaces): PodSides {
  return {
    interfaces: (named) => readPodInterfaces(namespaces, named),
    ends: (named) => readPodEnds(namespaces, named),
    peers: (links, named) => readSandboxPeers(namespaces, links, named),
    mark: (host, pod) => markTakenPod({ namespaces, host }, pod),
  };
}
