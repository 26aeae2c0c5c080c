import type { NetnsRef } from '../netlink/link-message.ts';
import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { messageOf } from '../runtime/error-text.ts';
import { UndoStack } from '../runtime/undo-stack.ts';
import type { Sysctl } from '../sysctl/sysctl.ts';
import { addressFamily } from './address-family.ts';
import type { RouteState } from './desired.ts';
import { familyOf } from './ip-prefix.ts';
import type { Kernel, NodeKernel } from './kernel.ts';
import { makeVeth } from './make-veth.ts';
import type { NodeNetwork, PodNetwork } from './network.ts';
import { RTPROT_TKE_ENI } from './numbers.ts';
import { renderRoute } from './operation.ts';
import { getsFilterPlace } from './plan-fast-path.ts';
import { planPod } from './plan-pod.ts';
import { routeSpec, ruleSpec } from './to-request.ts';
import { WireError } from './wire-error.ts';
import { type NetlinkStep, toWiringRequest, type WiringPhase, type WiringStep, wiringPhases } from './wiring-steps.ts';

/** One attachment to wire. */
export type PodWiring<Pod extends PodNetwork = PodNetwork> = {
  readonly node: NodeNetwork;
  /** `hostVeth.ifindex` is not known yet. */
  readonly pod: Pod;
  /** Host veth name to use when another sandbox has the wanted one: `hostVethFallbackName`. */
  readonly fallbackName: string;
};

/** What the lease has to store; 0 and '' for a Pod with foreign links. */
export type WiredPod = { readonly hostIfindex: number; readonly hostName: string; readonly podIfindex: number };

/**
 * Wires one Pod in 1 to 3 ms: links, then settings, then the Pod's side in one write, then the host's side in one
 * write. The veth has no carrier until the Pod's side is up, so no packet passes before the settings apply. nftables is
 * not changed: the link group, which the pair is created with, is enough. On any failure everything is undone.
 * @throws WireError
 */
export function wirePod(
  kernel: Pick<NodeKernel, 'rtnetlink' | 'sysctl' | 'enter'>,
  podNetns: NetnsRef,
  wiring: PodWiring,
): WiredPod {
  const undo = new UndoStack();
  try {
    if (wiring.pod.kind === 'ipam') return wireRules(kernel.rtnetlink, wiring, undo);
    using inPod = kernel.enter(podNetns);
    return wireLinks(kernel, { rtnetlink: inPod.rtnetlink, sysctl: inPod.sysctl, netns: podNetns }, wiring, undo);
  } catch (cause) {
    const failures = undo.unwind();
    const error = toWireError(cause);
    error.leftBehind = failures.map(({ what }) => what);
    throw error;
  }
}

type InPod = { readonly rtnetlink: Rtnetlink; readonly sysctl: Sysctl; readonly netns: NetnsRef };

function wireRules(rtnetlink: Rtnetlink, { node, pod }: PodWiring, undo: UndoStack): WiredPod {
  for (const { steps } of wiringPhases(planPod(node, pod))) addHostSide(rtnetlink, netlinkSteps(steps), undo);
  return { hostIfindex: 0, hostName: '', podIfindex: 0 };
}

function wireLinks(
  kernel: Pick<Kernel, 'rtnetlink' | 'sysctl'>,
  inPod: InPod,
  { node, pod, fallbackName }: PodWiring,
  undo: UndoStack,
): WiredPod {
  const { rtnetlink } = kernel;
  const master = bridgeOf(rtnetlink, node, pod);
  const hasFilterPlace = getsFilterPlace(node, pod);
  const veth = { pod, fallbackName, hasFilterPlace, ...(master !== undefined && { master }) };
  const pair = makeVeth(rtnetlink, inPod.rtnetlink, inPod.netns, veth);
  const { ifindex, name } = pair;
  // Deleting the link deletes its routes on both sides.
  undo.push(`link ${name}`, () => rtnetlink.link.delete({ ifindex }));
  const podIfindex = pair.podIfindex ?? indexInPod(inPod, pod);
  const plan = planPod(node, { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }, podIfindex);
  doPhases(wiringPhases(plan), { host: kernel, pod: inPod, containerId: pod.key.containerId }, undo);
  return { hostIfindex: ifindex, hostName: name, podIfindex };
}

/** Finds the Pod's end of its new pair. @throws WireError LINK_GONE */
function indexInPod({ rtnetlink }: InPod, { podVeth, key }: PodNetwork): number {
  const link = rtnetlink.link.get({ ifname: podVeth.name });
  if (link !== undefined) return link.ifindex;
  throw new WireError('LINK_GONE', `${podVeth.name} vanished from sandbox ${key.containerId} while it was being wired`);
}

/** Returns the bridge that the Pod's link is a port of; undefined for a Pod without one. @throws WireError BRIDGE_MISSING */
function bridgeOf(rtnetlink: Rtnetlink, { bridge }: NodeNetwork, pod: PodNetwork): number | undefined {
  if (pod.kind !== 'bridge' || pod.wiring !== 'bridge') return undefined;
  if (bridge === undefined)
    throw new WireError('BRIDGE_MISSING', 'this node wires no Pods to a bridge: see --gr-wiring');
  const { ifindex, name } = bridge;
  if (rtnetlink.link.get({ ifindex })?.kind === 'bridge') return ifindex;
  throw new WireError('BRIDGE_MISSING', `the bridge ${name} is missing; the agent makes it with the rest of the node`);
}

/** The two sides of the Pod that is wired. */
type WiringSides = {
  readonly host: Pick<Kernel, 'rtnetlink' | 'sysctl'>;
  readonly pod: { readonly rtnetlink: Rtnetlink; readonly sysctl: Sysctl };
  readonly containerId: string;
};

/** Does phases in their order. What it did on the host is pushed onto `undo`. @throws WireError, NetlinkError, SysctlError */
export function doPhases(phases: readonly WiringPhase[], sides: WiringSides, undo: UndoStack): void {
  for (const { side, steps } of phases) {
    setSysctls(sides[side].sysctl, steps);
    const requests = netlinkSteps(steps);
    if (requests.length === 0) continue;
    if (side === 'host') addHostSide(sides.host.rtnetlink, requests, undo);
    else addPodSide(sides.pod.rtnetlink, requests, sides.containerId);
  }
}

function setSysctls(sysctl: Sysctl, steps: readonly WiringStep[]): void {
  const settings = steps.flatMap((step) => (step.kind === 'set-sysctl' ? [step.sysctl] : []));
  if (settings.length === 0) return;
  sysctl.setAll(
    settings.map(({ key, value, isOptional }) => ({ key, value, ...(isOptional === true && { isOptional }) })),
  );
}

function netlinkSteps(steps: readonly WiringStep[]): readonly NetlinkStep[] {
  return steps.filter((step) => step.kind !== 'set-sysctl');
}

/** Writes the host's side in one exchange. Routes are added, not replaced: an existing one may be foreign. */
function addHostSide(rtnetlink: Rtnetlink, steps: readonly NetlinkStep[], undo: UndoStack): void {
  const outcomes = rtnetlink.execute(steps.map(toWiringRequest));
  // Record everything that was made before any error is thrown.
  for (const [at, step] of steps.entries()) {
    if (outcomes[at]?.kind !== 'ok') continue;
    if (step.kind === 'add-rule') {
      const { rule } = step;
      undo.push(`rule of ${rule.src ?? rule.dst}`, () => rtnetlink.rule.delete(ruleSpec(rule)));
    }
    // Routes to a link go with it.
    if (step.kind === 'add-route' && step.route.oif === 0) {
      const { route } = step;
      undo.push(`route of ${route.dst}`, () => rtnetlink.route.delete(routeSpec(route)));
    }
  }
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'error') continue;
    // An existing equal rule is the wanted rule: all its fields are its identity.
    if (!isNetlinkError(outcome.error, 'EEXIST')) throw outcome.error;
    const step = steps[at];
    if (step?.kind === 'add-route') replaceOurRoute(rtnetlink, step.route);
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

/** Writes the Pod's side in one exchange. */
function addPodSide(rtnetlink: Rtnetlink, steps: readonly NetlinkStep[], containerId: string): void {
  for (const [at, outcome] of rtnetlink.execute(steps.map(toWiringRequest)).entries()) {
    if (outcome.kind !== 'error') continue;
    const step = steps[at];
    if (step?.kind !== 'add-route' || !isNetlinkError(outcome.error, 'EEXIST')) throw outcome.error;
    const { route } = step;
    throw new WireError(
      'ROUTE_TAKEN',
      `the sandbox ${containerId} already leads ${route.dst} elsewhere, "${renderRoute(route)}" cannot be added; one sandbox takes one such interface`,
      outcome.error,
    );
  }
}

/** Converts any thrown value to a WireError. */
export function toWireError(cause: unknown): WireError {
  if (cause instanceof WireError) return cause;
  return new WireError('KERNEL', messageOf(cause), cause);
}
