import { addressFamily } from '../../dataplane/address-family.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import { IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_TCP, IPPROTO_UDP } from '../../netlink/uapi/in.ts';
import { finding } from '../catalogue/catalogue.ts';
import { routeId, tableId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { protocolName } from '../faults/narrow-selector.ts';
import type { NodeAssessment } from '../judge/assess-node.ts';
import type { HostFacts, NetnsFacts } from '../node/node-facts.ts';
import { ruleElement } from '../node/rule-selector.ts';
import { type Comparison, compareWithKernel } from './compare-with-kernel.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { findRoute, type PassedRule, type RouteResult } from './find-route.ts';
import { type ExpectedRoute, findRoutingFault } from './find-routing-fault.ts';
import type { Flow } from './flow.ts';
import { hopOf, mostSevere } from './hop.ts';
import { refusalText, routeText, ruleText } from './routing-text.ts';

/** The rule and the route of one packet in the node's namespace. */
export type Routing = {
  readonly hops: readonly [rule: Hop, route: Hop];
  readonly result: RouteResult;
  readonly taken: Comparison;
};

/**
 * Simulates which rule and route a packet gets, asks the kernel the same, and compares both with the expected route, if
 * there is one.
 */
export function evaluateRouting(
  context: ExplainContext,
  packet: Flow,
  expected: ExpectedRoute | undefined,
  refusedBy?: string,
): Routing {
  const { host } = context.facts;
  // Without a protocol the kernel takes UDP in its answer.
  const flow = hasProtocolRules(host) ? { ipProto: IPPROTO_TCP, ...packet } : packet;
  const result = findRoute(host, flow);
  const element = routeElement(result, expected);
  const query = { lookup: context.lookup, podKey: undefined, links: host.links, flow };
  const taken = compareWithKernel({ ...query, ...(refusedBy === undefined ? {} : { refusedBy }) }, result, element);
  const fault =
    expected === undefined
      ? undefined
      : findRoutingFault({
          family: flow.family,
          result,
          route: taken.route,
          oif: taken.oif,
          gateway: taken.gateway,
          expected,
          rules: host.rules,
          links: host.links,
          assessment: context.assessment,
        });
  const tableName = (table: number) => nameOf(host.tableNames, table);
  const rule = hopOf(
    {
      kind: 'rule',
      element: ruleElementOf(result, flow.family),
      title: result.rule === undefined ? 'no rule leads anywhere' : `rule ${ruleText(result.rule, tableName)}`,
      details: [flowText(flow, host), ...result.passed.map((passed) => passedText(passed, host, tableName))],
    },
    mostSevere(
      fault?.hop === 'rule' ? fault.finding : undefined,
      findProtocolFault(host, context.assessment, flow, result),
    ),
  );
  const route = hopOf(
    { kind: 'route', element, title: routeTitle(result, taken, host), details: taken.lines },
    mostSevere(fault?.hop === 'route' ? fault.finding : undefined, taken.finding),
  );
  return { hops: [rule, route], result, taken };
}

/** Formats a table as number and name. */
function nameOf(names: ReadonlyMap<number, string>, table: number): string {
  const name = names.get(table);
  return name === undefined ? String(table) : table < 256 ? name : `${table} (${name})`;
}

function ruleElementOf({ rule }: RouteResult, family: 4 | 6): string {
  return rule === undefined ? `rule:${family}:none` : ruleElement(rule, family);
}

function routeElement(result: RouteResult, expected: ExpectedRoute | undefined): string {
  if (result.route !== undefined) return routeId(result.route.table, result.route.dst ?? 'default');
  return tableId(result.rule?.table ?? expected?.table ?? TABLE_MAIN);
}

function routeTitle(result: RouteResult, { route }: Comparison, { links }: NetnsFacts): string {
  if (route !== undefined) return `route ${routeText(route, links)}`;
  if (result.route !== undefined) return `route ${routeText(result.route, links)}`;
  return result.kind === 'refused' ? refusalText(result.code) : 'no route';
}

function flowText({ dst, src, iif, mark }: Flow, { links }: NetnsFacts): string {
  const by =
    iif === undefined ? 'from the node itself' : `in by ${links.find(({ ifindex }) => ifindex === iif)?.ifname}`;
  return `packet: to ${dst}${src === undefined ? '' : ` from ${src}`}, ${by}, mark 0x${mark.toString(16)}`;
}

function passedText({ rule, why, route }: PassedRule, { links }: NetnsFacts, name: (table: number) => string): string {
  const texts = {
    empty: `nothing for it in table ${name(rule.table)}`,
    throw: `"${route === undefined ? '' : routeText(route, links)}" sends it on`,
    suppressed: `"${route === undefined ? '' : routeText(route, links)}" is suppressed`,
    goto: `jumps to ${rule.goto}`,
    nop: 'does nothing',
  };
  return `passed: rule ${ruleText(rule, name)}: ${texts[why]}`;
}

/** Reports whether rules of the node select by protocol: then packets of one flow may get different routes. */
function hasProtocolRules({ rules }: Pick<HostFacts, 'rules'>): boolean {
  return rules.some(({ ipProto = 0 }) => ipProto !== 0);
}

/**
 * Finds a rule of another program that refuses packets of one protocol, or leads them elsewhere, where other packets of
 * the flow get a route.
 * @param result the route of a packet of the flow
 */
function findProtocolFault(
  host: HostFacts,
  assessment: NodeAssessment,
  flow: Flow,
  result: RouteResult,
): Finding | undefined {
  if (!hasProtocolRules(host)) return undefined;
  const protocols = [flow.family === 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, IPPROTO_TCP, IPPROTO_UDP];
  const found = protocols.flatMap((ipProto) =>
    differenceOf({ flow, result, assessment }, findRoute(host, { ...flow, ipProto }), ipProto),
  );
  return found.find(({ severity }) => severity === 'error') ?? found[0];
}

function differenceOf(
  {
    flow,
    result: usual,
    assessment,
  }: { readonly flow: Flow; readonly result: RouteResult; readonly assessment: NodeAssessment },
  own: RouteResult,
  ipProto: number,
): readonly Finding[] {
  const { rule } = own;
  if (rule?.ipProto === undefined || rule.protocol === RTPROT_TKE_ENI || rule === usual.rule) return [];
  const isRefused = own.kind === 'refused';
  const weight = { severity: isRefused ? ('error' as const) : ('warning' as const) };
  const element = ruleElement(rule, flow.family);
  const found = assessment.about(element, ['foreign-rule-above-ours']);
  if (found !== undefined) return [{ ...found, ...weight }];
  const outcome = isRefused ? refusalText(own.code) : `table ${rule.table}`;
  return [
    finding('foreign-rule-above-ours', {
      what: `rule "${ruleText(rule)}" catches ${protocolName(ipProto)} packets of this flow before ours: ${outcome}`,
      fix: [renderRule('delete', { ...rule, family: addressFamily(flow.family) })],
      subjects: [element],
      ...weight,
    }),
  ];
}
