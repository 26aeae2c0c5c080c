import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Netns } from '../netlink/netns.ts';
import type { Request } from '../netlink/request.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../netlink/rtnetlink.ts';
import { UndoStack } from '../runtime/undo-stack.ts';
import { openSysctl, type Sysctl } from '../sysctl/sysctl.ts';
import type { HostState, PodState, RouteState, SysctlState } from './desired.ts';
import { familyOf } from './ip-prefix.ts';
import type { Kernel } from './kernel.ts';
import { makeVeth } from './make-veth.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { RTPROT_TKE_ENI } from './numbers.ts';
import { renderRoute } from './operation.ts';
import { planSharedEniPod } from './plan-shared-eni-pod.ts';
import { addressFamily, addressSpec, neighSpec, routeSpec, ruleSpec } from './to-request.ts';
import { WireError } from './wire-error.ts';

/** One attachment to wire. */
export type PodWiring = {
  readonly node: NodeNetwork;
  /** `hostVeth.ifindex` is not known yet. */
  readonly pod: PodNetwork;
  /** Host veth name to take when another sandbox holds the wanted one: `hostVethFallbackName`. */
  readonly fallbackName: string;
};

/** What the lease must remember; 0 and '' for a Pod whose links are not ours. */
export type WiredPod = { readonly hostIfindex: number; readonly hostName: string; readonly podIfindex: number };

/**
 * Wires one Pod in 1 to 3 ms: links, then settings, then the Pod's side in one write, then the host's side in one write. The veth has
 * no carrier until the Pod's side is up, so no packet passes before the settings hold. nftables is not touched: the link group,
 * which the pair is born with, is all it needs. On any failure what was made is taken back.
 * @throws WireError
 */
export function wirePod(kernel: Pick<Kernel, 'rtnetlink' | 'sysctl'>, podNetns: Netns, wiring: PodWiring): WiredPod {
  const undo = new UndoStack();
  try {
    if (wiring.pod.kind === 'ipam') return wireRules(kernel.rtnetlink, wiring, undo);
    using inPod = openRtnetlinkIn(podNetns);
    return wireLinks(kernel, { rtnetlink: inPod, sysctl: openSysctl(podNetns), netns: podNetns }, wiring, undo);
  } catch (cause) {
    const failures = undo.unwind();
    const error = toWireError(cause);
    error.leftBehind = failures.map(({ what }) => what);
    throw error;
  }
}

type InPod = { readonly rtnetlink: Rtnetlink; readonly sysctl: Sysctl; readonly netns: Netns };

function wireRules(rtnetlink: Rtnetlink, { node, pod }: PodWiring, undo: UndoStack): WiredPod {
  addHostSide(rtnetlink, planSharedEniPod(node, pod).host, [], undo);
  return { hostIfindex: 0, hostName: '', podIfindex: 0 };
}

function wireLinks(
  { rtnetlink, sysctl }: Pick<Kernel, 'rtnetlink' | 'sysctl'>,
  inPod: InPod,
  { node, pod, fallbackName }: PodWiring,
  undo: UndoStack,
): WiredPod {
  const { ifindex, name } = makeVeth(rtnetlink, inPod.rtnetlink, inPod.netns, { pod, fallbackName });
  // The link's end takes its routes on both sides with it.
  undo.push(`link ${name}`, () => rtnetlink.link.delete({ ifindex }));
  const podIfindex = inPod.rtnetlink.link.get({ ifname: pod.podVeth.name })?.ifindex;
  if (podIfindex === undefined) {
    throw new WireError(
      'LINK_GONE',
      `${pod.podVeth.name} vanished from sandbox ${pod.key.containerId} while it was being wired`,
    );
  }
  const plan = planSharedEniPod(node, { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }, podIfindex);
  setSysctls(sysctl, plan.host.sysctls);
  setSysctls(inPod.sysctl, plan.pod.sysctls);
  addPodSide(inPod.rtnetlink, plan.pod, pod.key.containerId);
  // The kernel does not take an alias with a new link.
  const alias: Request = { object: 'link', verb: 'set', spec: { ifindex, ifalias: pod.alias } };
  addHostSide(rtnetlink, plan.host, [alias], undo);
  return { hostIfindex: ifindex, hostName: name, podIfindex };
}

/** Writes settings in order. @throws SysctlError */
export function setSysctls(sysctl: Sysctl, sysctls: readonly SysctlState[]): void {
  if (sysctls.length === 0) return;
  sysctl.setAll(
    sysctls.map(({ key, value, isOptional }) => ({ key, value, ...(isOptional === true && { isOptional }) })),
  );
}

function podSide(plan: PodState): readonly Request[] {
  return [
    ...plan.links.map(
      ({ ifindex, mtu }): Request => ({
        object: 'link',
        verb: 'set',
        spec: { ifindex, up: true, ...(mtu !== undefined && { mtu }) },
      }),
    ),
    ...plan.addresses.map((address): Request => ({ object: 'address', verb: 'add', spec: addressSpec(address) })),
    ...plan.routes.map((route): Request => ({ object: 'route', verb: 'add', spec: routeSpec(route) })),
    ...plan.neighs.map((neigh): Request => ({ object: 'neigh', verb: 'replace', spec: neighSpec(neigh) })),
  ];
}

/**
 * Writes the host's side in one exchange, after `first`. Routes are added, not replaced: what stands there may be somebody
 * else's. @throws WireError, NetlinkError
 */
export function addHostSide(rtnetlink: Rtnetlink, plan: HostState, first: readonly Request[], undo: UndoStack): void {
  const rules = plan.rules.map((rule): Request => ({ object: 'rule', verb: 'add', spec: ruleSpec(rule) }));
  const routes = plan.routes.map((route): Request => ({ object: 'route', verb: 'add', spec: routeSpec(route) }));
  const outcomes = rtnetlink.execute([...first, ...routes, ...rules]);
  // First note what was made, then look at what was not.
  plan.rules.forEach((rule, at) => {
    if (outcomes[first.length + routes.length + at]?.kind !== 'ok') return;
    undo.push(`rule of ${rule.src ?? rule.dst}`, () => rtnetlink.rule.delete(ruleSpec(rule)));
  });
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'error') continue;
    // A rule that is there already is the very rule we want: all its fields are its identity.
    if (!isNetlinkError(outcome.error, 'EEXIST')) throw outcome.error;
    const route = plan.routes[at - first.length];
    if (route !== undefined) replaceOurRoute(rtnetlink, route);
  }
}

function replaceOurRoute(rtnetlink: Rtnetlink, route: RouteState): void {
  const family = addressFamily(familyOf(route.dst));
  const foreign = rtnetlink.route
    .list({ family, table: route.table })
    .find(({ dst, protocol }) => dst === route.dst && protocol !== RTPROT_TKE_ENI);
  if (foreign !== undefined) {
    throw new WireError(
      'ROUTE_TAKEN',
      `cannot add "${renderRoute(route)}": a route for ${route.dst} of protocol ${foreign.protocol} stands there; remove it or its owner`,
    );
  }
  rtnetlink.route.replace(routeSpec(route));
}

/** Writes the Pod's side in one exchange. @throws WireError, NetlinkError */
export function addPodSide(rtnetlink: Rtnetlink, plan: PodState, containerId: string): void {
  const firstRoute = plan.links.length + plan.addresses.length;
  for (const [at, outcome] of rtnetlink.execute(podSide(plan)).entries()) {
    if (outcome.kind !== 'error') continue;
    const route = plan.routes[at - firstRoute];
    if (route === undefined || !isNetlinkError(outcome.error, 'EEXIST')) throw outcome.error;
    throw new WireError(
      'ROUTE_TAKEN',
      `the sandbox ${containerId} already leads ${route.dst} elsewhere, "${renderRoute(route)}" cannot be added; one sandbox takes one such interface`,
      outcome.error,
    );
  }
}

/** Makes a WireError of whatever went wrong. */
export function toWireError(cause: unknown): WireError {
  if (cause instanceof WireError) return cause;
  return new WireError('KERNEL', cause instanceof Error ? cause.message : String(cause), cause);
}
