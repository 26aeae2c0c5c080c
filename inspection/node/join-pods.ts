import type { Lease } from '../../agent/journal/lease.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { RT_SCOPE_UNIVERSE, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { ifKnown } from './known.ts';
import type { NodeFacts, PodReading } from './node-facts.ts';

/** As many characters of a container id as `crictl pods` shows. */
const SHOWN_ID_LENGTH = 13;

/** A Pod interface of this node, joined with its lease, its addresses and its two links. */
export type NodePod = {
  readonly pod: PodReading;
  readonly containerId: string;
  readonly ifName: string;
  /** `namespace/name`, or the container id where the name is not known; followed by the interface unless it is eth0. */
  readonly title: string;
  /** 'Pod default/web-0', for sentences. */
  readonly name: string;
  /** Undefined where no lease is known. */
  readonly lease: Lease | undefined;
  /** IPv4 first: those of its lease; without a lease those inside the Pod, or those routed to its host link. */
  readonly ips: readonly string[];
  /** Host end of the veth pair that has our alias. */
  readonly hostLink: LinkMessage | undefined;
  /** The interface in the Pod; undefined where the inside was not read. */
  readonly podLink: LinkMessage | undefined;
  /** True for a GlobalRoute Pod: by its lease, or, without one, as a port of a bridge. */
  readonly isGr: boolean;
};

/** Joins the Pod interfaces of a node with their leases and links, in the order of the facts. */
export function joinPods({ host, pods }: Pick<NodeFacts, 'host' | 'pods'>): readonly NodePod[] {
  const links = new Map(host.links.map((link) => [link.ifindex, link]));
  return pods.map((pod): NodePod => {
    const slash = pod.key.indexOf('/');
    const [containerId, ifName] = [pod.key.slice(0, slash), pod.key.slice(slash + 1)];
    const lease = ifKnown(pod.lease);
    const hostLink = links.get(pod.hostIfindex ?? 0);
    const podLink = ifKnown(pod.inside)?.links.find(({ ifname }) => ifname === ifName);
    const title = titleOf(containerId, ifName, lease);
    return {
      ...{ pod, containerId, ifName, lease, hostLink, podLink, title },
      name: `Pod ${title}`,
      ips: lease?.addresses.map(({ ip }) => ip) ?? addressesOf(host, pod, podLink),
      isGr: lease === undefined ? links.get(hostLink?.master ?? 0)?.kind === 'bridge' : lease.block !== undefined,
    };
  });
}

function titleOf(containerId: string, ifName: string, lease: Lease | undefined): string {
  const suffix = ifName === 'eth0' ? '' : ` ${ifName}`;
  return lease === undefined || lease.podName === ''
    ? `${containerId.slice(0, SHOWN_ID_LENGTH)}${suffix}`
    : `${lease.podNamespace}/${lease.podName}${suffix}`;
}

function addressesOf(
  { routes }: NodeFacts['host'],
  { inside, hostIfindex }: PodReading,
  podLink: LinkMessage | undefined,
): readonly string[] {
  const inPod = (ifKnown(inside)?.addresses ?? [])
    .filter(({ ifindex, scope }) => ifindex === podLink?.ifindex && scope === RT_SCOPE_UNIVERSE)
    .map(ownAddress);
  const routed = routes
    .filter(
      ({ oif, dst, type }) => oif !== undefined && oif === hostIfindex && dst !== undefined && type === RTN_UNICAST,
    )
    .flatMap(({ dst = '' }) => (/\/(32|128)$/.test(dst) ? [dst.slice(0, dst.indexOf('/'))] : []));
  return [...new Set(inPod.length > 0 ? inPod : routed)].sort((a, b) => familyOf(a) - familyOf(b));
}
