import type { Request } from '../netlink/request.ts';
import { sysctlName } from '../sysctl/sysctl-key.ts';
import type { AddressState, HostState, LinkState, NeighState, RouteState, RuleState, SysctlState } from './desired.ts';
import { familyOf } from './ip-prefix.ts';
import { renderOperation, renderRoute } from './operation.ts';
import type { PodPlan } from './plan-routed-pod.ts';
import { addressSpec, neighSpec, portSpec, routeSpec, ruleSpec } from './to-request.ts';

/** One change that ADD makes after the links exist. It adds, where repair replaces: nothing of this Pod is there yet. */
export type WiringStep = { readonly kind: 'set-sysctl'; readonly sysctl: SysctlState } | NetlinkStep;

/** A step that is one netlink request. */
export type NetlinkStep =
  | { readonly kind: 'set-link-up'; readonly link: LinkState }
  | { readonly kind: 'set-alias'; readonly alias: LinkAlias }
  | { readonly kind: 'set-port'; readonly port: LinkPort }
  | { readonly kind: 'add-address'; readonly address: AddressState }
  | { readonly kind: 'replace-neigh'; readonly neigh: NeighState }
  | { readonly kind: 'add-route'; readonly route: RouteState }
  | { readonly kind: 'add-rule'; readonly rule: RuleState };

/** The IFLA_IFALIAS that a link gets. The kernel ignores an alias on a new link, so it is set afterwards. */
type LinkAlias = { readonly ifindex: number; readonly ifname: string; readonly ifalias: string };

/** A port of a bridge that sends packets back to where they came from. */
type LinkPort = { readonly ifindex: number; readonly ifname: string };

/** Steps on one side of a Pod's link. Settings are written one by one, netlink requests in one exchange. */
export type WiringPhase = { readonly side: 'host' | 'pod'; readonly steps: readonly WiringStep[] };

/**
 * Lists the steps of an ADD in the order in which they are done; `wirePod` and `wireExclusivePod` do them, `renderWiring` prints
 * them. First the settings of both sides: the veth has no carrier until the Pod's end is up, so no packet passes before they
 * apply. Then the Pod's side. The host's side is last: only then do packets reach the Pod.
 */
export function wiringPhases({ host, pod }: PodPlan): readonly WiringPhase[] {
  const phases: readonly WiringPhase[] = [
    { side: 'host', steps: host.sysctls.map(toSysctlStep) },
    { side: 'pod', steps: pod.sysctls.map(toSysctlStep) },
    { side: 'pod', steps: podSteps(pod) },
    { side: 'host', steps: hostSteps(host) },
  ];
  return phases.filter(({ steps }) => steps.length > 0);
}

function podSteps(pod: HostState): readonly NetlinkStep[] {
  return [
    ...pod.links.map((link) => ({ kind: 'set-link-up' as const, link })),
    ...pod.addresses.map((address) => ({ kind: 'add-address' as const, address })),
    ...pod.routes.map((route) => ({ kind: 'add-route' as const, route })),
    ...pod.neighs.map((neigh) => ({ kind: 'replace-neigh' as const, neigh })),
  ];
}

/**
 * The host's link was created up, in its group and its bridge; the alias and the port's flags are missing. Rules from the Pod
 * come before its routes: once the kernel takes packets from the Pod, they must not leave by the primary interface. Those
 * to it come after them: what refuses packets for want of a Pod is passed over then.
 */
function hostSteps(host: HostState): readonly NetlinkStep[] {
  return [
    ...host.links.flatMap(({ ifindex, ifname, ifalias }) =>
      ifalias === undefined ? [] : [{ kind: 'set-alias' as const, alias: { ifindex, ifname, ifalias } }],
    ),
    ...host.links
      .filter(({ hairpin }) => hairpin === true)
      .map(({ ifindex, ifname }) => ({ kind: 'set-port' as const, port: { ifindex, ifname } })),
    ...host.neighs.map((neigh) => ({ kind: 'replace-neigh' as const, neigh })),
    ...host.rules.filter(({ dst }) => dst === undefined).map((rule) => ({ kind: 'add-rule' as const, rule })),
    ...host.routes.map((route) => ({ kind: 'add-route' as const, route })),
    ...host.rules.filter(({ dst }) => dst !== undefined).map((rule) => ({ kind: 'add-rule' as const, rule })),
  ];
}

function toSysctlStep(sysctl: SysctlState): WiringStep {
  return { kind: 'set-sysctl', sysctl };
}

/** Translates a step to its netlink request. */
export function toWiringRequest(step: NetlinkStep): Request {
  switch (step.kind) {
    case 'set-link-up': {
      const { ifindex, mtu } = step.link;
      return { object: 'link', verb: 'set', spec: { ifindex, up: true, ...(mtu !== undefined && { mtu }) } };
    }
    case 'set-alias': {
      const { ifindex, ifalias } = step.alias;
      return { object: 'link', verb: 'set', spec: { ifindex, ifalias } };
    }
    case 'set-port':
      return { object: 'link', verb: 'set', spec: portSpec(step.port.ifindex, { hairpin: true }) };
    case 'add-address':
      return { object: 'address', verb: 'add', spec: addressSpec(step.address) };
    case 'replace-neigh':
      return { object: 'neigh', verb: 'replace', spec: neighSpec(step.neigh) };
    case 'add-route':
      return { object: 'route', verb: 'add', spec: routeSpec(step.route) };
    case 'add-rule':
      return { object: 'rule', verb: 'add', spec: ruleSpec(step.rule) };
  }
}

/** Renders the command line that does a step by hand. */
export function renderWiringStep(step: WiringStep): string {
  switch (step.kind) {
    case 'set-sysctl':
      return `sysctl -w ${sysctlName(step.sysctl.key)}=${step.sysctl.value}`;
    case 'set-link-up': {
      const { ifindex, ifname, mtu } = step.link;
      const change = { up: true, ...(mtu !== undefined && { mtu }) };
      return renderOperation({ kind: 'set-link', ifindex, ifname, change, before: {} });
    }
    case 'set-alias':
      return `ip link set dev ${step.alias.ifname} alias ${step.alias.ifalias}`;
    case 'set-port':
      return renderOperation({ kind: 'set-port', ...step.port, change: { hairpin: true }, before: {} });
    case 'add-address':
      return renderOperation({ kind: 'add-address', address: step.address });
    case 'replace-neigh':
      return renderOperation({ kind: 'replace-neigh', neigh: step.neigh });
    case 'add-route':
      return `${familyOf(step.route.dst) === 4 ? 'ip' : 'ip -6'} route add ${renderRoute(step.route)}`;
    case 'add-rule':
      return renderOperation({ kind: 'add-rule', rule: step.rule });
  }
}
