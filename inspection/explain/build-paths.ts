import { familyOf, isAddress } from '../../dataplane/ip-prefix.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId, podId } from '../catalogue/element-id.ts';
import { linkName, type ModelEni, type ModelPod, nodeAddresses, podOfIp } from '../model/node-model.ts';
import { bridgeHop, isBridged, isOnBridge } from './bridge-hop.ts';
import { cloudHop } from './cloud-hop.ts';
import { evaluateRouting, type Routing } from './evaluate-routing.ts';
import {
  expectedRouteBetweenPods,
  expectedRouteByEni,
  expectedRouteOfGr,
  expectedRouteToConnected,
  expectedRouteToNode,
  expectedRouteToPod,
} from './expected-route.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop, Path } from './explanation.ts';
import { fastPathHop } from './fast-path-hop.ts';
import { findRoute } from './find-route.ts';
import type { ExpectedRoute } from './find-routing-fault.ts';
import { findService, type Service } from './find-service.ts';
import type { Flow } from './flow.ts';
import { grRouteHop, ingressLink, masqueradeHop, primaryLink } from './gr-hops.ts';
import { hopOf } from './hop.ts';
import { eniHop, gatewayHop, podNeighHop, vethHop } from './link-hops.ts';
import { evaluateMark } from './mark-hop.ts';
import { ownEniHop, ownExitHop } from './own-eni-hop.ts';
import { receivingHop, sendingHops } from './pod-hops.ts';
import { serviceHop } from './service-hop.ts';
import { deliveryHop, forwardingHop, outputHop, sourceCheckHop } from './setting-hops.ts';

/** The other end of a conversation. */
export type End =
  | { readonly kind: 'pod'; readonly ip: string; readonly pod: ModelPod }
  | { readonly kind: 'node'; readonly ip: string }
  | { readonly kind: 'outside'; readonly ip: string };

/** Reports whether an address belongs to a Pod of this node, to the node, or to neither. */
export function endOf(context: ExplainContext, ip: string): End {
  const pod = podOfIp(context, ip);
  if (pod !== undefined) return { kind: 'pod', ip, pod };
  return { kind: nodeAddresses(context, familyOf(ip)).includes(ip) ? 'node' : 'outside', ip };
}

/**
 * Tells where packets that a Pod sends to an address go: to that address, or, if it is a Service, to a backend, of
 * another Pod if possible.
 */
export function targetOf(context: ExplainContext, view: ModelPod, ip: string): Target {
  const to = endOf(context, ip);
  const service = to.kind === 'pod' ? undefined : findService(context.facts, ip);
  if (service === undefined || (to.kind === 'node' && !service.isKubeProxy)) return { to };
  if (!service.isKubeProxy) return { to, service: { ...service, isWalked: false } };
  const backend = service.backends.find((each) => !view.ips.includes(each));
  if (backend === undefined) return { to, service: { ...service, isWalked: false } };
  return { to: endOf(context, backend), service: { ...service, isWalked: true } };
}

/** Describes an end for the heading of a path. */
export function endText(end: End): string {
  if (end.kind === 'pod') return `${end.ip} (Pod ${end.pod.title})`;
  return end.kind === 'node' ? `${end.ip} (this node)` : end.ip;
}

/** The destination of a packet that a Pod sends. */
type Target = {
  readonly to: End;
  /**
   * The Service that the Pod names as its destination. `isWalked`: the path continues with `to`, the backend behind it.
   */
  readonly service?: (Service & { readonly isWalked: boolean }) | undefined;
};

/** Walks a packet that a Pod sends. @param src an address of the Pod, or a forged one */
export function pathFromPod(context: ExplainContext, view: ModelPod, src: string, { to, service }: Target): Path {
  const named = service?.ip ?? to.ip;
  const sending = sendingHops(context, view, src, named);
  const path = {
    direction: 'from-pod' as const,
    from: `${src} (Pod ${view.title})`,
    to: service?.isKubeProxy === true ? `${named} (Service)` : endText(to),
  };
  if (sending.staysInside) return { ...path, hops: sending.hops };
  const isBySide = to.kind === 'pod' && to.pod.gr !== undefined && isSideLink(view, sending.oif);
  if (view.hasOwnEni && !isBySide) return { ...path, hops: [...sending.hops, ownExitHop(view, sending.oif)] };
  const veth = vethHop(context, view, to.kind === 'outside' && view.gr === undefined);
  if (to.kind === 'pod' && service === undefined && isBridged(view, to.pod)) {
    return { ...path, hops: [...sending.hops, veth, ...bridgedHops(context, view, to.pod, { src, dst: to.ip })] };
  }
  const hops: Hop[] = [...sending.hops, veth];
  if (view.veth !== undefined && isOnBridge(view)) hops.push(bridgeHop(context, view));
  const link = view.veth === undefined ? undefined : ingressLink(context, view);
  if (link !== undefined) hops.push(...routedFromPod(context, view, { src, to, service, link }));
  else if (to.kind === 'outside' && view.gr === undefined)
    hops.push(...egressHops(context, view, { src, dst: to.ip }, undefined));
  return { ...path, hops };
}

/** Reports whether packets leave a Pod that has its own ENI by the link to the node beside it. */
function isSideLink(view: ModelPod, oif: number | undefined): boolean {
  return view.hasOwnEni && oif !== undefined && oif === view.veth?.link;
}

function bridgedHops(
  context: ExplainContext,
  from: ModelPod,
  to: ModelPod,
  { src, dst, isFirst = true }: { readonly src: string; readonly dst: string; readonly isFirst?: boolean },
): readonly Hop[] {
  const bridged = bridgeHop(context, to, { from, src, dst, isFirst });
  return [bridged, vethHop(context, to, false), receivingHop(context, to, src, dst)];
}

type Sent = Target & { readonly src: string; readonly link: LinkMessage };

function routedFromPod(context: ExplainContext, view: ModelPod, { src, to, service, link }: Sent): readonly Hop[] {
  const family = familyOf(src);
  const isLocal = to.kind === 'node';
  const isRoutedByMark = to.kind === 'outside';
  const packet = { family, src, dst: service?.ip ?? to.ip, link, pod: view };
  const marked = evaluateMark(context, { ...packet, isLocal: isLocal && service === undefined, isRoutedByMark });
  const rewritten =
    service === undefined ? [] : [serviceHop(service, view.title, service.isWalked ? to.ip : undefined)];
  if (service?.isKubeProxy === true && !service.isWalked) return [marked.hop, ...rewritten];
  const flow: Flow = { family, src, dst: to.ip, iif: link.ifindex, mark: marked.mark };
  const expected = expectedRouteFromPod(context, view, src, to, marked.mark);
  const isTranslated = service !== undefined;
  const routed = routeThrough(context, flow, { expected, pod: view, isLocal, isFirst: true, isTranslated });
  const [rule, route] = routed.routing.hops;
  // With a wrong mark the rules work as configured. The wrong link that follows is a consequence, not another fault.
  const usesWrongLink =
    expected === undefined && to.kind === 'outside' && routed.routing.taken.oif !== view.eni?.ifindex;
  const routing = usesWrongLink ? wrongLinkHop(context, view, src, routed.routing) : route;
  const hops = [marked.hop, ...rewritten, rule, routing, ...routed.checks];
  switch (to.kind) {
    case 'node':
      return hops;
    case 'pod':
      return [...hops, ...ingressHops(context, to.pod, src, to.ip)];
    case 'outside':
      return [...hops, ...egressHops(context, view, { src, dst: to.ip }, routed.routing)];
  }
}

function expectedRouteFromPod(
  context: ExplainContext,
  view: ModelPod,
  src: string,
  to: End,
  mark: number,
): ExpectedRoute | undefined {
  if (to.kind === 'node') return expectedRouteToNode(to.ip);
  if (to.kind === 'pod') return expectedRouteBetweenPods(context, to.pod, to.ip);
  if (view.gr !== undefined) return expectedRouteOfGr(context, to.ip);
  const connected = expectedRouteToConnected(context, to.ip);
  if (connected !== undefined) return connected;
  const { mask, ruleMode } = context;
  const isMarked = ruleMode === 'per-pod' || !view.isOurs || (mark & mask) >>> 0 === (view.eni?.mark ?? 0);
  return isMarked ? expectedRouteByEni(context, view, src, mark) : undefined;
}

function wrongLinkHop(context: ExplainContext, view: ModelPod, src: string, { hops: [, route], taken }: Routing): Hop {
  if (view.eni === undefined || !view.ips.includes(src) || route.finding !== undefined) return route;
  const by = linkName(context.facts.host.links, taken.oif);
  const found = finding('source-not-ours', {
    what: `${src} would leave by ${by}, which does not have it by the supply that is recorded: if so, the VPC drops it`,
    fix: ['repair the earlier broken hop first'],
    subjects: [podId(view.pod.key), linkId(taken.oif ?? 0)],
  });
  return hopOf(route, found);
}

type Checks = {
  readonly expected: ExpectedRoute | undefined;
  /** The Pod that sends the packet, by its host veth. */
  readonly pod: ModelPod | undefined;
  readonly eni?: ModelEni;
  /** The route that answers to a packet from outside should take; absent where the packet's ENI or Pod says it. */
  readonly back?: ExpectedRoute | undefined;
  readonly isLocal: boolean;
  /** Whether it opens a connection. */
  readonly isFirst: boolean;
  /** Whether its addresses are translated on the way. */
  readonly isTranslated?: boolean;
};

/** Evaluates rule, route, and the checks that the kernel makes along with them. */
function routeThrough(
  context: ExplainContext,
  flow: Flow,
  { expected, pod, eni, isLocal, isFirst, isTranslated = false, ...outside }: Checks,
): { readonly routing: Routing; readonly checks: readonly Hop[] } {
  const result = findRoute(context.facts.host, flow);
  const oif = isLocal || result.kind === 'refused' ? undefined : result.nexthops[0]?.oif;
  const iif = flow.iif ?? 0;
  const { src = '', dst, family } = flow;
  const passing = { family, src, dst, iif, oif, isFirst };
  const forwarding = isLocal ? undefined : forwardingHop(context, passing);
  const delivery = isLocal ? deliveryHop(context, passing) : undefined;
  const back = pod?.ips.includes(src) === true ? expectedRouteToPod(context, pod, src) : outside.back;
  const packet = { src, dst: flow.dst, iif, mark: flow.mark, oif, pod, eni, back };
  const source = flow.family === 4 ? sourceCheckHop(context, packet) : undefined;
  const refusedBy = [
    forwarding?.isOn === false ? 'forwarding is off' : undefined,
    source?.isDropped === true ? 'the source check drops it' : undefined,
  ].find((why) => why !== undefined);
  const routing = evaluateRouting(context, flow, expected, refusedBy);
  const own = pod?.ips.includes(src) === true ? 'src' : 'dst';
  const fastPath =
    isLocal || refusedBy !== undefined ? undefined : fastPathHop(context, { src, dst, iif, oif, own, isTranslated });
  return { routing, checks: [delivery, forwarding?.hop, source?.hop, fastPath].filter((hop) => hop !== undefined) };
}

/** Builds the hops out of the node, by the link that the route names. */
function egressHops(
  context: ExplainContext,
  view: ModelPod,
  { src, dst }: { readonly src: string; readonly dst: string },
  routing: Routing | undefined,
): readonly Hop[] {
  const oif = routing?.taken.oif;
  const eni = context.enis.find(({ ifindex }) => ifindex !== undefined && ifindex === oif);
  const isPodEni = eni !== undefined && eni.table === view.eni?.table;
  const gateway = routing?.taken.gateway;
  // Without a route, the ENI that the packet should use is shown.
  const shown = isPodEni || oif === undefined ? (eni ?? view.eni) : eni;
  const link = shown === undefined ? primaryHops(context, oif) : [eniHop(context, shown, familyOf(src), view)];
  if (view.gr !== undefined) {
    const { hop, isKept } = masqueradeHop(context, view, src, dst);
    return [...link, hop, ...(isKept ? [grRouteHop(context, view, src)] : [])];
  }
  return [
    ...link,
    ...(isPodEni && gateway !== undefined ? [gatewayHop(context, eni, gateway)] : []),
    ...(view.ips.includes(src) ? [cloudHop(context, src, view.eni)] : []),
  ];
}

function primaryHops({ facts }: ExplainContext, oif: number | undefined): readonly Hop[] {
  const link = facts.host.links.find(({ ifindex }) => ifindex === oif);
  if (link === undefined) return [];
  return [
    hopOf({
      kind: 'link',
      element: linkId(link.ifindex),
      title: `leaves by ${link.ifname}`,
      details: [`mtu ${link.mtu}`],
    }),
  ];
}

/** Builds the hops from the host end of the Pod's veth pair into the Pod. */
function ingressHops(context: ExplainContext, view: ModelPod, src: string, dst: string): readonly Hop[] {
  const veth = vethHop(context, view, false);
  const [neigh, receiving] = [podNeighHop(context, view, dst), receivingHop(context, view, src, dst)];
  return isOnBridge(view) ? [bridgeHop(context, view), neigh, veth, receiving] : [veth, neigh, receiving];
}

/** Walks a packet to a Pod, from any sender. @param dst an address of the Pod */
export function pathToPod(context: ExplainContext, view: ModelPod, dst: string, from: End): Path {
  // Packets that a Pod sends by its own ENI reach other Pods from the VPC; to a block of the node it sends by the node.
  const isByVpc = from.kind === 'pod' && from.pod.hasOwnEni && !sendsByNode(context, from, view, dst);
  const sender: End = isByVpc ? { kind: 'outside', ip: from.ip } : from;
  if (sender.kind === 'pod' && isBridged(sender.pod, view)) {
    const hops = [
      vethHop(context, sender.pod, false),
      ...bridgedHops(context, sender.pod, view, { src: from.ip, dst, isFirst: false }),
    ];
    return { direction: 'to-pod', from: endText(from), to: `${dst} (Pod ${view.title})`, hops };
  }
  const towards = hopsTowardsPod(context, view, dst, sender);
  const isByOwnEni = view.hasOwnEni && sender.kind === 'outside';
  const lastHops = isByOwnEni ? [receivingHop(context, view, from.ip, dst)] : ingressHops(context, view, from.ip, dst);
  const hops = [...towards, ...lastHops];
  return { direction: 'to-pod', from: endText(from), to: `${dst} (Pod ${view.title})`, hops };
}

function sendsByNode(
  context: ExplainContext,
  { pod, ip }: End & { readonly kind: 'pod' },
  view: ModelPod,
  dst: string,
): boolean {
  return view.gr !== undefined && isSideLink(pod, sendingHops(context, pod, ip, dst).oif);
}

function hopsTowardsPod(context: ExplainContext, view: ModelPod, dst: string, from: End): readonly Hop[] {
  if (view.hasOwnEni && from.kind === 'outside') return [ownEniHop(view, 'arrives')];
  const family = familyOf(dst);
  const expected =
    from.kind === 'pod' ? expectedRouteBetweenPods(context, view, dst) : expectedRouteToPod(context, view, dst);
  const { eni } = view;
  const packet = { family, src: from.ip, dst, isLocal: false, isRoutedByMark: false };
  switch (from.kind) {
    case 'node': {
      const { hops, taken } = evaluateRouting(context, { family, dst, mark: 0 }, expected);
      // A caller that has no address of the node names it by words.
      const src = isAddress(from.ip) ? { src: from.ip } : {};
      const output = outputHop(context, { family, dst, oif: taken.oif, isFirst: true, ...src });
      return output === undefined ? hops : [...hops, output];
    }
    case 'pod': {
      const link = ingressLink(context, from.pod);
      const entry = [
        vethHop(context, from.pod, false),
        ...(isOnBridge(from.pod) && from.pod.veth !== undefined ? [bridgeHop(context, from.pod)] : []),
      ];
      if (link === undefined || from.pod.veth === undefined) return entry;
      const marked = evaluateMark(context, { ...packet, link, pod: from.pod });
      const flow: Flow = { family, src: from.ip, dst, iif: link.ifindex, mark: marked.mark };
      const { routing, checks } = routeThrough(context, flow, {
        expected,
        pod: from.pod,
        isLocal: false,
        isFirst: false,
      });
      return [...entry, marked.hop, ...routing.hops, ...checks];
    }
    case 'outside': {
      if (view.gr !== undefined) return hopsByGrRoute(context, view, dst, from);
      const cloud = cloudHop(context, dst, eni);
      if (eni === undefined) return [cloud, ...evaluateRouting(context, { family, dst, mark: 0 }, expected).hops];
      const arrival = [cloud, eniHop(context, eni, family, view)];
      if (eni.link === undefined) return arrival;
      const marked = evaluateMark(context, { ...packet, link: eni.link, pod: undefined, eni });
      const flow: Flow = { family, src: from.ip, dst, iif: eni.link.ifindex, mark: marked.mark };
      const { routing, checks } = routeThrough(context, flow, {
        expected,
        pod: undefined,
        eni,
        isLocal: false,
        isFirst: false,
      });
      return [...arrival, marked.hop, ...routing.hops, ...checks];
    }
  }
}

/** Walks a packet that the VPC's route of the Pod's block leads to the node. */
function hopsByGrRoute(context: ExplainContext, view: ModelPod, dst: string, from: End): readonly Hop[] {
  const expected = expectedRouteToPod(context, view, dst);
  const link = primaryLink(context);
  const cloud = grRouteHop(context, view, dst);
  const family = familyOf(dst);
  if (link === undefined) return [cloud, ...evaluateRouting(context, { family, dst, mark: 0 }, expected).hops];
  const packet = { family, src: from.ip, dst, isLocal: false, isRoutedByMark: false };
  const marked = evaluateMark(context, { ...packet, link, pod: undefined });
  const flow: Flow = { family, src: from.ip, dst, iif: link.ifindex, mark: marked.mark };
  const back = expectedRouteOfGr(context, from.ip);
  const way = { expected, pod: undefined, back, isLocal: false, isFirst: false };
  const { routing, checks } = routeThrough(context, flow, way);
  const arrival = hopOf({
    kind: 'link',
    element: linkId(link.ifindex),
    title: `arrives by ${link.ifname}`,
    details: [`mtu ${link.mtu}`],
  });
  return [cloud, arrival, marked.hop, ...routing.hops, ...checks];
}
