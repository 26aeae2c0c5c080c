import { anyPrefix, familyOf, hostPrefix, prefixLength } from '../../dataplane/ip-prefix.ts';
import { POD_GATEWAY_IPV4, POD_GATEWAY_IPV6, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_NOARP, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { NUD_FAILED, NUD_NOARP, NUD_PERMANENT } from '../../netlink/uapi/neighbour.ts';
import { RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId, podId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findLinkObstacles } from '../faults/find-link-obstacles.ts';
import { findInsideFaults } from '../faults/find-setting-fault.ts';
import { findXfrmFault } from '../faults/find-xfrm-fault.ts';
import type { ModelPod } from '../model/node-model.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { isOnBridge, isOnLink } from './bridge-hop.ts';
import { compareWithKernel } from './compare-with-kernel.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { findRoute } from './find-route.ts';
import type { Flow } from './flow.ts';
import { hopOf, mostSevere, unknownHop } from './hop.ts';
import { refusalText, routeText } from './routing-text.ts';

const DELETE_POD = ['delete the Pod: changes inside it are not repaired'];

/** The hops inside the Pod for a packet that it sends. */
type Sending = {
  readonly hops: readonly Hop[];
  /** Whether the destination is an address inside the Pod: such a packet never leaves the Pod. */
  readonly staysInside: boolean;
  /** The Pod's interface by which the packet leaves; undefined where it is not known. */
  readonly oif?: number;
};

/** Walks a packet inside the Pod that sends it: interface and address, the Pod's route, its neighbour entry. */
export function sendingHops(context: ExplainContext, view: ModelPod, src: string, dst: string): Sending {
  const { pod, podLink: link } = view;
  const { inside } = pod;
  const fields = { kind: 'pod' as const, element: podId(pod.key), title: podHopTitle(view, src) };
  if (inside.kind === 'unknown') return sendingOf(unknownHop(fields, inside.why, inside.next));
  const netns = inside.value;
  if (link === undefined) return sendingOf(hopOf(fields, podLinkFault(context, view, undefined)));
  const hasAddress = addressesOf(netns, link).includes(src);
  const isPodAddress = view.ips.includes(src);
  const fault = mostSevere(
    podLinkFault(context, view, link),
    isPodAddress && !hasAddress ? addressMissing(context, view, src) : undefined,
    isPodAddress ? undefined : foreignSource(view, src),
    ...obstacles(view, netns, link),
    ...findInsideFaults(netns, { ...view, title: view.name, prefix: inPod(view) }, familyOf(src)),
    findXfrmFault(netns, { dir: 'out', src, dst, ifindex: link.ifindex }, view.name, inPod(view)),
  );
  const pod0 = hopOf({ ...fields, details: linkLines(netns, link) }, fault);
  const flow: Flow = { family: familyOf(src), dst, mark: 0, ...(hasAddress ? { src } : {}) };
  const { hop, gateway, isLocal, oif } = podRouteHop(context, view, netns, flow);
  if (isLocal) return { hops: [pod0, hop], staysInside: true };
  const sent = sendingOf(pod0, hop, ...neighHops(context, view, { netns, link, gateway, dst }));
  return oif === undefined ? sent : { ...sent, oif };
}

type Asking = {
  readonly netns: NetnsFacts;
  readonly link: LinkMessage;
  readonly gateway: string | undefined;
  readonly dst: string;
};

function neighHops(context: ExplainContext, view: ModelPod, { netns, link, gateway, dst }: Asking): readonly Hop[] {
  if (isOnBridge(view)) return [askedNeighHop(context, view, netns, link, gateway ?? dst)];
  return gateway === undefined ? [] : [neighHop(context, view, netns, link, gateway)];
}

function sendingOf(...hops: readonly Hop[]): Sending {
  return { hops, staysInside: false };
}

/** Builds the hop inside the Pod that receives a packet. */
export function receivingHop(context: ExplainContext, view: ModelPod, src: string, dst: string): Hop {
  const { pod, podLink: link } = view;
  const { inside } = pod;
  const fields = { kind: 'pod' as const, element: podId(pod.key), title: podHopTitle(view, dst) };
  if (inside.kind === 'unknown') return unknownHop(fields, inside.why, inside.next);
  const netns = inside.value;
  if (link === undefined) return hopOf(fields, podLinkFault(context, view, undefined));
  const lines = linkLines(netns, link);
  const taken = [
    ...obstacles(view, netns, link),
    ...findInsideFaults(netns, { ...view, title: view.name, prefix: inPod(view) }, familyOf(dst)),
    findXfrmFault(netns, { dir: 'in', src, dst, ifindex: link.ifindex }, view.name, inPod(view)),
  ];
  // Which of the two interfaces receives the packet is not known here.
  if (view.hasOwnEni) {
    const lacks = addressesOf(netns, link).includes(dst) ? undefined : addressMissing(context, view, dst);
    return hopOf({ ...fields, details: lines }, mostSevere(podLinkFault(context, view, link), lacks, ...taken));
  }
  const flow: Flow = { family: familyOf(dst), dst, src, iif: link.ifindex, mark: 0 };
  const result = findRoute(netns, flow);
  const isTaken = result.kind === 'route' && result.route.type === RTN_LOCAL;
  const query = { lookup: context.lookup, podKey: pod.key, links: netns.links, flow };
  const answer = compareWithKernel(query, result, podId(pod.key));
  const isMissing = !addressesOf(netns, link).includes(dst);
  const fault = mostSevere(
    podLinkFault(context, view, link),
    isMissing || !isTaken ? addressMissing(context, view, dst) : undefined,
    answer.finding,
    ...taken,
  );
  return hopOf({ ...fields, details: [...lines, ...answer.lines] }, fault);
}

/** What was attached to the Pod's interface that takes its packets. */
function obstacles(view: ModelPod, netns: NetnsFacts, link: LinkMessage): readonly Finding[] {
  const { pod, ifName, name } = view;
  const subjects = [linkId(link.ifindex, pod.key), podId(pod.key)];
  return findLinkObstacles(netns, { link, title: `${ifName} in ${name}`, subjects, prefix: inPod(view) });
}

/** Beginning of a command that is for the Pod's namespace. */
function inPod({ lease }: ModelPod): string {
  return `nsenter --net=${lease?.netns ?? '<netns>'} `;
}

function podHopTitle(view: ModelPod, ip: string): string {
  return `Pod ${view.title}, ${view.ifName}, ${ip}`;
}

function addressesOf(netns: NetnsFacts, link: LinkMessage): readonly string[] {
  return netns.addresses.filter(({ ifindex }) => ifindex === link.ifindex).map(ownAddress);
}

function linkLines(netns: NetnsFacts, link: LinkMessage): readonly string[] {
  const state = (link.flags & IFF_UP) === 0 ? 'down' : link.carrier === 0 ? 'up, no carrier' : 'up';
  const present = addressesOf(netns, link);
  return [
    `${link.ifname}: ${state}, mtu ${link.mtu}, mac ${link.address ?? 'none'}`,
    `addresses: ${present.length === 0 ? 'none' : present.join(', ')}`,
  ];
}

function podLinkFault(
  { assessment }: ExplainContext,
  view: ModelPod,
  link: LinkMessage | undefined,
): Finding | undefined {
  const { name, ifName, pod } = view;
  if (link === undefined) {
    return finding('veth-missing', {
      what: `${name} has no interface ${ifName}`,
      fix: DELETE_POD,
      subjects: [podId(pod.key)],
    });
  }
  const isUp = (link.flags & IFF_UP) !== 0;
  if (isUp && ((link.flags & IFF_NOARP) === 0 || !view.isOurs))
    return assessment.about(podId(pod.key), ['mtu-mismatch']);
  const change = isUp ? { arp: true } : { up: true };
  const before = isUp ? { arp: false } : { up: false };
  return (
    // Where something else of the link is wrong too, one command repairs both.
    assessment.about(podId(pod.key), [isUp ? 'link-noarp' : 'pod-link-down']) ??
    assessment.inPod({ kind: 'set-link', ifindex: link.ifindex, ifname: ifName, change, before }, view)
  );
}

function addressMissing({ assessment }: ExplainContext, view: ModelPod, ip: string): Finding | undefined {
  const { gr, podLink, ifName: ifname } = view;
  const prefix = gr?.wiring === 'bridge' ? `${ip}/${prefixLength(gr.cidr)}` : hostPrefix(ip);
  const address = { ifindex: podLink?.ifindex ?? 0, ifname, prefix };
  return assessment.inPod({ kind: 'add-address', address }, view);
}

/** Reports a forged source where the packet starts. It is a warning: the packet is dropped at a later hop. */
function foreignSource(view: ModelPod, src: string): Finding {
  return finding('source-not-ours', {
    what: `${src} is no address of ${view.title} (${view.ips.join(', ')})`,
    fix: [`let the Pod send with ${view.ips[0] ?? 'its own address'}`],
    subjects: [podId(view.pod.key)],
    severity: 'warning',
    isOurs: false,
  });
}

function podRouteHop(
  context: ExplainContext,
  view: ModelPod,
  netns: NetnsFacts,
  flow: Flow,
): { readonly hop: Hop; readonly isLocal: boolean; readonly gateway?: string; readonly oif?: number } {
  const result = findRoute(netns, flow);
  const element = `route:${view.pod.key}:${result.route?.dst ?? 'default'}`;
  const query = { lookup: context.lookup, podKey: view.pod.key, links: netns.links, flow };
  const taken = compareWithKernel(query, result, element);
  const { route, gateway, oif } = taken;
  const shown = route ?? result.route;
  const title = shown === undefined ? 'no route in the Pod' : `route in the Pod: ${routeText(shown, netns.links)}`;
  const gatewayIp = gatewayOf(view, flow.family);
  const isOnLinkRoute = gateway === undefined && isOnLink(view, flow.dst);
  const isLocal = route?.type === RTN_LOCAL;
  const fault =
    (isLocal ? localAddressFault(view, flow.dst) : sourceFault(context, view, flow)) ??
    podRouteFault(context, view, flow, result.kind === 'refused' ? result.code : undefined, {
      hasRefusal: result.kind === 'refused' && result.route !== undefined,
      isOurs:
        view.hasOwnEni || (oif === view.podLink?.ifindex && (gateway === gatewayIp || isOnLinkRoute || !view.isOurs)),
      isLocal,
      title,
    });
  const hop = hopOf({ kind: 'route', element, title, details: taken.lines }, mostSevere(fault, taken.finding));
  const way = { hop, isLocal, ...(oif === undefined ? {} : { oif }) };
  // A gateway of another plugin or of the VPC is a real host that answers ARP or ND: its entry is not checked.
  const isByGateway = view.isOurs && !view.hasOwnEni && oif === view.podLink?.ifindex && gateway !== undefined;
  return isByGateway ? { ...way, gateway } : way;
}

/**
 * Reports a destination that is an address inside the Pod, but not one of the Pod's own: such packets never leave the
 * Pod.
 */
function localAddressFault(view: ModelPod, dst: string): Finding | undefined {
  if (view.ips.includes(dst)) return undefined;
  return finding('address-two-owners', {
    what: `${dst} is an address inside ${view.title}: packets for it stay there, even if another Pod has it`,
    fix: [`nsenter --net=${view.lease?.netns ?? '<netns>'} ip address show to ${hostPrefix(dst)}`, ...DELETE_POD],
    subjects: [podId(view.pod.key)],
    severity: 'warning',
  });
}

/**
 * Reports a wrong source address. A program that binds no address sends with the one that the route or the kernel
 * selects.
 */
function sourceFault({ lookup, assessment }: ExplainContext, view: ModelPod, flow: Flow): Finding | undefined {
  const { src, ...unbound } = flow;
  const answer = lookup(view.pod.key, unbound, false);
  const chosen = answer.kind === 'route' ? answer.route.prefsrc : undefined;
  if (
    src === undefined ||
    !view.ips.includes(src) ||
    chosen === undefined ||
    view.ips.includes(chosen) ||
    chosen === flow.dst
  )
    return undefined;
  const found = assessment.about(podId(view.pod.key), ['source-not-ours'], flow.family);
  if (found !== undefined) return found;
  return finding('source-not-ours', {
    what: `${view.name} sends with ${chosen}, which is none of its addresses (${view.ips.join(', ')}): the node drops it as forged`,
    fix: [
      'tke-eni repair',
      `nsenter --net=${view.lease?.netns ?? '<netns>'} ip address del ${hostPrefix(chosen)} dev ${view.ifName}`,
      ...DELETE_POD,
    ],
    subjects: [podId(view.pod.key)],
  });
}

type PodRouteState = {
  readonly hasRefusal: boolean;
  readonly isOurs: boolean;
  readonly isLocal: boolean;
  readonly title: string;
};

function podRouteFault(
  { assessment }: ExplainContext,
  view: ModelPod,
  { family }: Flow,
  code: string | undefined,
  state: PodRouteState,
): Finding | undefined {
  const subjects = [podId(view.pod.key)];
  const found = assessment.about(podId(view.pod.key), ['foreign-route', 'pod-route-missing'], family);
  if (code !== undefined && found !== undefined) return found;
  if (code !== undefined && state.hasRefusal) {
    const what = `${view.name}: ${state.title}: ${refusalText(code)}`;
    return finding('blackhole-route', { what, fix: DELETE_POD, subjects });
  }
  if (code !== undefined) {
    const { ifName: oifname, podLink } = view;
    const gateway = gatewayOf(view, family);
    const route = { table: TABLE_MAIN, dst: anyPrefix(family), gateway, oif: podLink?.ifindex ?? 0, oifname };
    return assessment.inPod({ kind: 'replace-route', route }, view);
  }
  if (state.isOurs || state.isLocal) return undefined;
  return finding('pod-route-missing', {
    what: `${view.title} sends it by a route that is not ours: ${state.title}`,
    fix: ['look at who adds routes in the Pod (a VPN, a second network); nothing to do if it is meant so'],
    subjects,
    severity: 'warning',
  });
}

/** Returns the gateway of a Pod: no host has that of a Pod with a link of its own, the bridge has that of its block. */
function gatewayOf({ gr }: ModelPod, family: 4 | 6): string {
  if (gr?.wiring === 'bridge') return gr.gateway;
  return family === 4 ? POD_GATEWAY_IPV4 : POD_GATEWAY_IPV6;
}

/** Checks the entry that a Pod on the bridge has for its gateway, or for another Pod of its block: it asks for both. */
function askedNeighHop(
  { bridge }: ExplainContext,
  view: ModelPod,
  netns: NetnsFacts,
  link: LinkMessage,
  ip: string,
): Hop {
  const neigh = netns.neighs.find(({ ifindex, dst }) => ifindex === link.ifindex && dst === ip);
  const lladdr = neigh === undefined || (neigh.state & NUD_FAILED) !== 0 ? undefined : neigh.lladdr;
  const expected = ip === view.gr?.gateway ? bridge.link?.address : undefined;
  const fields = {
    kind: 'neigh' as const,
    element: `neigh:${view.pod.key}:${ip}`,
    title: lladdr === undefined ? `neighbour ${ip} is asked for when a packet goes` : `neighbour ${ip} is ${lladdr}`,
    details: [expected === undefined ? undefined : `bridge ${bridge.name}: ${expected}`],
  };
  if (lladdr === undefined || expected === undefined || lladdr === expected) return hopOf(fields);
  const isFixed = ((neigh?.state ?? 0) & NUD_PERMANENT) !== 0;
  const found = finding('neigh-wrong-mac', {
    what: `${view.title} sends to ${lladdr} for ${ip}; the bridge ${bridge.name} has ${expected}`,
    fix: [`${inPod(view)}ip neigh del ${ip} dev ${view.ifName}`],
    subjects: [fields.element, podId(view.pod.key)],
    isOurs: false,
    // An entry that was asked for is asked for again.
    ...(isFixed ? {} : { severity: 'warning' as const }),
  });
  return hopOf(fields, found);
}

/**
 * Checks the permanent neighbour entry of the gateway. No host has the gateway's address; the entry holds the host
 * veth's MAC.
 */
function neighHop(context: ExplainContext, view: ModelPod, netns: NetnsFacts, link: LinkMessage, gateway: string): Hop {
  const neigh = netns.neighs.find(({ ifindex, dst }) => ifindex === link.ifindex && dst === gateway);
  const expected = view.veth?.address ?? view.lease?.hostVeth?.mac;
  const element = `neigh:${view.pod.key}:${gateway}`;
  const fields = {
    kind: 'neigh' as const,
    element,
    title: `neighbour ${gateway} is ${neighText(neigh)}`,
    details: [`host veth: ${expected ?? 'not known'}`],
  };
  return hopOf(fields, neighFault(context, view, { neigh, ifindex: link.ifindex }, expected, gateway));
}

type Neigh = NetnsFacts['neighs'][number];

/** True when the kernel sends by this entry: it has a MAC, and asking for it did not fail. */
const isUsable = (neigh: Neigh | undefined): neigh is Neigh & { readonly lladdr: string } =>
  neigh?.lladdr !== undefined && (neigh.state & NUD_FAILED) === 0;

/** An entry that is asked for (NUD_INCOMPLETE), one that failed, and none are the same: the first two pass within seconds. */
function neighText(neigh: Neigh | undefined): string {
  if (!isUsable(neigh)) return 'not known';
  const isPermanent = (neigh.state & NUD_PERMANENT) !== 0;
  return `${neigh.lladdr} (${isPermanent ? 'permanent' : 'not permanent'})`;
}

function neighFault(
  { assessment }: ExplainContext,
  view: ModelPod,
  { neigh, ifindex }: { readonly neigh: Neigh | undefined; readonly ifindex: number },
  expected: string | undefined,
  gateway: string,
): Finding | undefined {
  const isPermanent = isUsable(neigh) && (neigh.state & (NUD_PERMANENT | NUD_NOARP)) !== 0;
  if (isPermanent && (expected === undefined || neigh.lladdr === expected)) return undefined;
  const veth = assessment.about(linkId(view.veth?.ifindex ?? 0), ['veth-mac-changed']);
  if (isUsable(neigh) && neigh.lladdr === view.lease?.hostVeth?.mac && veth !== undefined) return veth;
  const common = { ifindex, ifname: view.ifName, dst: gateway };
  const before = isPermanent ? { before: { ...common, lladdr: neigh.lladdr } } : {};
  const found =
    assessment.about(podId(view.pod.key), ['neigh-missing', 'neigh-wrong-mac'], familyOf(gateway)) ??
    assessment.inPod({ kind: 'replace-neigh', neigh: { ...common, lladdr: expected ?? '' }, ...before }, view);
  // One that is not permanent serves until it ages out: no host answers for it.
  const isLeft = isUsable(neigh) && neigh.lladdr === expected;
  return found && { ...found, ...(isLeft ? { severity: 'warning' } : {}) };
}
