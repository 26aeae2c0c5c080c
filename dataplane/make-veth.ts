import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { decideTakenName } from './host-veth-name.ts';
import { linkGroupOf } from './link-group.ts';
import type { PodNetwork } from './network.ts';
import { WireError } from './wire-error.ts';

/** The host end of a veth pair. */
type HostVeth = { readonly ifindex: number; readonly name: string };
/** A new pair; `podIfindex` is the index of the Pod's end, where the kernel reports it. */
type NewPair = HostVeth & { readonly podIfindex?: number };

/** What one veth pair needs. */
type VethPlan = {
  readonly pod: PodNetwork;
  /** Used when another sandbox has the wanted host name. */
  readonly fallbackName: string;
  /** Ifindex of the bridge that the host end is a port of. */
  readonly master?: number;
  /** Whether the host end gets the place of its traffic filters. Default false. */
  readonly hasFilterPlace?: boolean;
};

/** First a leftover is deleted, then the fallback name is used; a third failure cannot be corrected by a retry. */
const MAX_ATTEMPTS = 3;

/**
 * Makes the pair in one request, both ends in their final namespaces: moving an end later costs seconds when many Pods
 * start. The host end is created in its ENI's group, so it is never up in a wrong group, and up, unless it gets the place of its
 * filters: the kernel waits for packets on the way before it gives that to a link that is up. A veth's peer cannot be created up. A leftover of the same attachment is deleted first; no other link is changed.
 * @throws WireError IFNAME_TAKEN, NetlinkError
 */
export function makeVeth(
  host: Rtnetlink,
  inPod: Rtnetlink,
  podNetns: { readonly fd: number },
  plan: VethPlan,
): NewPair {
  const { pod, fallbackName } = plan;
  let name = pod.hostVeth.name;
  for (let attempt = 1; ; attempt++) {
    try {
      const pair = addPair(host, podNetns, plan, name);
      if (plan.hasFilterPlace === true) setUpWithFilterPlace(host, pair);
      return pair;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isNetlinkError(error, 'EEXIST')) throw error;
      name = resolveTakenName(host, inPod, pod, name, fallbackName);
    }
  }
}

/** Finds the links of one attachment: by our alias or, when none was written yet, by the MAC of its lease. */
export function findHostVeths(host: Rtnetlink, pod: Pick<PodNetwork, 'alias' | 'hostVeth'>): readonly HostVeth[] {
  const wanted = { alias: pod.alias, mac: pod.hostVeth.mac };
  return host.link
    .list({ kind: 'veth' })
    .filter(({ ifalias, address }) => {
      const found = { ...(ifalias !== undefined && { ifalias }), ...(address !== undefined && { mac: address }) };
      return decideTakenName(found, wanted) === 'replace';
    })
    .map(({ ifindex, ifname }) => ({ ifindex, name: ifname }));
}

/**
 * Makes the place of a link's traffic filters, and sets the link up. Without the place the link is as good: an agent that attaches a
 * filter makes it then.
 */
function setUpWithFilterPlace(host: Rtnetlink, { ifindex }: HostVeth): void {
  const [, up] = host.execute([
    { object: 'qdisc', verb: 'add', spec: { ifindex, kind: 'clsact' } },
    { object: 'link', verb: 'set', spec: { ifindex, up: true } },
  ]);
  if (up?.kind !== 'error') return;
  host.link.delete({ ifindex });
  throw up.error;
}

function addPair(
  host: Rtnetlink,
  podNetns: { readonly fd: number },
  { pod, master, hasFilterPlace }: VethPlan,
  name: string,
): NewPair {
  const { mtu, hostVeth, podVeth } = pod;
  const { ifindex, peerIfindex } = host.link.addPair({
    kind: 'veth',
    ifname: name,
    address: hostVeth.mac,
    mtu,
    group: linkGroupOf(pod),
    ...(master !== undefined && { master }),
    up: hasFilterPlace !== true,
    peer: { ifname: podVeth.name, address: podVeth.mac, mtu, netns: podNetns },
  });
  // Old kernels do not echo the new link.
  const end = { ifindex: ifindex > 0 ? ifindex : indexOf(host, name), name };
  return peerIfindex === undefined ? end : { ...end, podIfindex: peerIfindex };
}

function indexOf(host: Rtnetlink, name: string): number {
  const link = host.link.get({ ifname: name });
  if (link === undefined)
    throw new WireError('LINK_GONE', `${name} vanished as soon as it was made; was the sandbox stopped?`);
  return link.ifindex;
}

// EEXIST may concern either end; the kernel does not tell which.
function resolveTakenName(
  host: Rtnetlink,
  inPod: Rtnetlink,
  pod: PodNetwork,
  name: string,
  fallbackName: string,
): string {
  const leftovers = findHostVeths(host, pod);
  if (leftovers.length > 0) {
    for (const { ifindex } of leftovers) host.link.delete({ ifindex });
    return name;
  }
  if (inPod.link.get({ ifname: pod.podVeth.name }) !== undefined) {
    const { containerId } = pod.key;
    throw new WireError(
      'IFNAME_TAKEN',
      `the sandbox ${containerId} already has an interface ${pod.podVeth.name} that is not ours; choose another CNI_IFNAME or delete it`,
    );
  }
  return fallbackName;
}
