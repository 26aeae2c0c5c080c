import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { RT_TABLE_LOCAL, RT_TABLE_MAIN, RTN_BROADCAST, RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { ElementId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { RouteResult } from './find-route.ts';
import type { Flow } from './flow.ts';
import type { KernelAnswer, KernelLookup } from './kernel-answer.ts';
import { lookupText, refusalText, routeText } from './routing-text.ts';

/** The routing query for the kernel. */
type KernelQuery = {
  readonly lookup: KernelLookup;
  /** Lease key of the Pod in whose namespace to ask; undefined: the node's namespace. */
  readonly podKey: string | undefined;
  readonly links: readonly LinkMessage[];
  readonly flow: Flow;
  /**
   * Why the kernel may refuse a packet that has a route. The kernel's lookup includes source validation and forwarding.
   */
  readonly refusedBy?: string;
};

/** The kernel's answer next to the simulated result. Where they differ, the kernel's answer counts. */
export type Comparison = {
  readonly lines: readonly string[];
  readonly finding?: Finding;
  /** The route that counts; undefined when the packet gets none. */
  readonly route?: RouteMessage;
  /** Link by which the packet leaves. For a multipath route, the link that the kernel selects for this packet. */
  readonly oif?: number;
  readonly gateway?: string;
};

/** Asks the kernel what it does with a packet, and compares the answer with the simulated result. */
export function compareWithKernel(query: KernelQuery, result: RouteResult, element: ElementId): Comparison {
  const { lookup, podKey, links, flow } = query;
  const matched = lookup(podKey, flow, true);
  const resolved = lookup(podKey, flow, false);
  const queryLine = `asked: ${lookupText(flow, links)}`;
  const simulated = simulatedRoute(result);
  const ours =
    simulated === undefined ? refusalText(result.kind === 'refused' ? result.code : '') : routeText(simulated, links);
  const answer = `kernel: ${answerText(matched, links, query.refusedBy)}`;
  const taken = takenText(matched, resolved, links);
  if (isAgreed(result, matched, query.refusedBy)) {
    return { ...egressOf(simulated, resolved, result), lines: [answer, ...taken, queryLine] };
  }
  const lines = [answer, `our reading: ${ours}`, ...taken, queryLine];
  const differs = finding('kernel-disagrees', {
    what: `the kernel says "${answerText(matched, links, undefined)}", our reading of rules and routes says "${ours}"`,
    fix: [`${lookupText(flow, links)}   # in the same namespace`, 'tke-eni bundle'],
    subjects: [element],
    ...(matched.kind === 'refused' ? { severity: 'error' as const } : {}),
  });
  return { ...(matched.kind === 'route' ? egressOf(matched.route, resolved, result) : {}), lines, finding: differs };
}

function simulatedRoute(result: RouteResult): RouteMessage | undefined {
  return result.kind === 'route' ? result.route : undefined;
}

function egressOf(
  route: RouteMessage | undefined,
  resolved: KernelAnswer,
  result: RouteResult,
): Pick<Comparison, 'route' | 'oif' | 'gateway'> {
  if (route === undefined) return {};
  const taken = resolved.kind === 'route' ? resolved.route : undefined;
  const first = result.kind === 'route' && result.route === route ? result.nexthops[0] : undefined;
  // For a local route the kernel returns `lo`, the link that such a packet takes.
  const oif = taken?.oif ?? first?.oif ?? route.oif;
  const gateway = taken?.gateway ?? taken?.via ?? first?.gateway ?? route.gateway;
  return { route, ...(oif === undefined ? {} : { oif }), ...(gateway === undefined ? {} : { gateway }) };
}

function isAgreed(result: RouteResult, answer: KernelAnswer, refusedBy: string | undefined): boolean {
  if (answer.kind === 'unknown') return true;
  if (answer.kind === 'refused') return result.kind === 'refused' || refusedBy !== undefined;
  return result.kind === 'route' && isSame(result.route, answer.route);
}

function isSame(a: RouteMessage, b: RouteMessage): boolean {
  return tableOf(a) === tableOf(b) && a.type === b.type && a.dst === b.dst && oifsOf(a) === oifsOf(b);
}

/**
 * Returns the table of a route as the kernel names it. Until a rule is added, the kernel keeps the local table inside
 * the main table, and reports main.
 * @see net/ipv4/fib_frontend.c fib_unmerge
 */
function tableOf({ type, table }: RouteMessage): number {
  const isLocals = type === RTN_LOCAL || type === RTN_BROADCAST;
  return isLocals && table === RT_TABLE_LOCAL ? RT_TABLE_MAIN : table;
}

function oifsOf({ multipath, oif }: RouteMessage): string {
  return (multipath?.map((hop) => hop.oif ?? 0) ?? [oif ?? 0]).sort((a, b) => a - b).join(' ');
}

function answerText(answer: KernelAnswer, links: readonly LinkMessage[], refusedBy: string | undefined): string {
  if (answer.kind === 'route') return routeText(answer.route, links);
  if (answer.kind === 'unknown') return `not asked: ${answer.why}`;
  return refusedBy === undefined ? refusalText(answer.code) : `${refusalText(answer.code)}: ${refusedBy}`;
}

/** Describes which link of a multipath route and which source address the kernel selects. */
function takenText(matched: KernelAnswer, resolved: KernelAnswer, links: readonly LinkMessage[]): readonly string[] {
  if (matched.kind !== 'route' || resolved.kind !== 'route') return [];
  const { prefsrc, oif } = resolved.route;
  const dev =
    matched.route.multipath === undefined ? [] : [`dev ${links.find((link) => link.ifindex === oif)?.ifname}`];
  const src = prefsrc === undefined ? [] : [`source ${prefsrc}`];
  return dev.length + src.length === 0 ? [] : [`chosen by the kernel: ${[...dev, ...src].join(', ')}`];
}
