import { addressFamily } from '../../dataplane/address-family.ts';
import { anyPrefix, hostPrefix } from '../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI, TABLE_PODLESS } from '../../dataplane/numbers.ts';
import { toRule } from '../../dataplane/to-state.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId, routeId, tableId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NodeAssessment } from '../judge/assess-node.ts';
import { eniIdOf } from '../model/build-names.ts';
import { linkName, type ModelEni, type ModelPod } from '../model/node-model.ts';
import { ruleElement } from '../node/rule-selector.ts';
import type { RouteResult } from './find-route.ts';
import { refusalText, routeText, ruleText } from './routing-text.ts';

/** The route that a packet should take. */
export type ExpectedRoute = {
  /** Rule of tke-eni that should decide; undefined where a rule of the kernel should. */
  readonly rule: RuleSpec | undefined;
  readonly table: number;
  /** Link by which it should leave; undefined: it is for the node itself. */
  readonly oif: number | undefined;
  readonly gateway?: string;
  /** 'the host route of default/web-0'. */
  readonly what: string;
  /** Destination as `ip route` prints it. */
  readonly dst: string;
  /**
   * The ENI or Pod that the route belongs to. The cause may be there: a link that is missing, down, or without its
   * address.
   */
  readonly eni?: ModelEni;
  readonly pod?: ModelPod;
  /** A fault of the link that the route needs: the reason where the route is gone. */
  readonly cause?: Finding | undefined;
  /** What follows where the rule is missing, where that differs from other rules. */
  readonly withoutRule?: { readonly why: string; readonly severity: Finding['severity'] };
  /** Another link from which the source is also valid: a packet that leaves there arrives, but not as planned. */
  readonly alternativeOif?: number;
};

/** Input of the check. */
type RoutingCheck = {
  readonly family: 4 | 6;
  readonly result: RouteResult;
  /** The route that counts: the simulated one, or the kernel's where they differ. */
  readonly route: RouteMessage | undefined;
  readonly oif: number | undefined;
  readonly gateway: string | undefined;
  readonly expected: ExpectedRoute;
  readonly rules: readonly RuleMessage[];
  readonly links: readonly LinkMessage[];
  readonly assessment: NodeAssessment;
};

/**
 * Finds why a packet does not take its expected route; undefined when it does. `hop` says which hop shows the fault.
 */
export function findRoutingFault(check: RoutingCheck): RoutingFault | undefined {
  const fault = faultOf(check);
  const { alternativeOif } = check.expected;
  if (fault === undefined || alternativeOif === undefined || check.oif !== alternativeOif) return fault;
  return { ...fault, finding: { ...fault.finding, severity: 'warning' } };
}

/** A fault of the routing, and the hop that shows it. */
type RoutingFault = { readonly hop: 'rule' | 'route'; readonly finding: Finding };

function faultOf(check: RoutingCheck): RoutingFault | undefined {
  const { expected, route, result } = check;
  if (route !== undefined && isAsExpected(check, route)) {
    const found = ruleFault(check);
    return found === undefined ? undefined : { hop: 'rule', finding: { ...found, severity: 'warning' } };
  }
  if (route?.type === RTN_LOCAL && expected.oif !== undefined)
    return { hop: 'route', finding: twoOwners(check, route) };
  const podless = podlessFault(check);
  if (podless !== undefined) return { hop: 'route', finding: podless };
  const decided = result.rule;
  if (decided !== undefined && isForeignAbove(check, decided))
    return { hop: 'rule', finding: foreignAbove(check, decided) };
  const missing = ruleFault(check);
  if (missing !== undefined) return { hop: 'rule', finding: missing };
  return { hop: 'route', finding: routeFault(check, route) };
}

/** Reports that the packet is for an address that no Pod has; undefined where one has it, and its own route is missing. */
function podlessFault({ result, expected, links }: RoutingCheck): Finding | undefined {
  const route = result.kind === 'refused' ? result.route : undefined;
  if (route?.table !== TABLE_PODLESS || route.protocol !== RTPROT_TKE_ENI || expected.dst === route.dst)
    return undefined;
  return finding('address-without-pod', {
    what: `${(route.dst ?? '').split('/')[0]} is an address of this node, and no Pod has it: "${routeText(route, links)}"`,
    fix: ['tke-eni pool'],
    subjects: [routeId(route.table, route.dst ?? 'default')],
  });
}

function isAsExpected({ expected, oif, gateway }: RoutingCheck, route: RouteMessage): boolean {
  if (expected.oif === undefined) return route.type === RTN_LOCAL;
  if (route.type !== RTN_UNICAST || oif !== expected.oif) return false;
  return expected.gateway === undefined || gateway === undefined || gateway === expected.gateway;
}

function isForeignAbove({ expected, rules, family }: RoutingCheck, decided: RuleMessage): boolean {
  const isOurs = decided.protocol === RTPROT_TKE_ENI;
  const isKernels = decided.priority === 0 || decided.priority >= 32766;
  if (isOurs || isKernels || expected.rule === undefined) return false;
  const expectedRule = rules.find((rule) => isExpectedRule(rule, expected.rule, family));
  return decided.priority <= expected.rule.priority && decided !== expectedRule;
}

function isExpectedRule(rule: RuleMessage, wanted: RuleSpec | undefined, family: 4 | 6): boolean {
  return (
    wanted !== undefined &&
    rule.priority === wanted.priority &&
    rule.table === wanted.table &&
    isSameSelector(rule, wanted, family)
  );
}

function isSameSelector(rule: RuleMessage, wanted: RuleSpec, family: 4 | 6): boolean {
  return (
    rule.family === addressFamily(family) &&
    rule.src === wanted.src &&
    rule.dst === wanted.dst &&
    (rule.fwmark ?? 0) === (wanted.fwmark ?? 0) &&
    (rule.fwmark === undefined || (rule.fwmask ?? 0xffffffff) === (wanted.fwmask ?? 0xffffffff)) &&
    toRule(rule).more === undefined
  );
}

/** What the assessment says of a rule: that the expected one is missing, looks up another table, or is there twice. */
function ruleFault({ expected, family, assessment }: RoutingCheck): Finding | undefined {
  const { rule, withoutRule } = expected;
  // Only the kernel's own rule leads to what is local.
  if (rule === undefined) return assessment.about(tableId(expected.table), ['rule-missing'], family);
  const element = ruleElement(rule, family);
  const found = assessment.about(element, ['rule-missing', 'rule-wrong-table', 'rule-duplicate'], family);
  return found === undefined ? undefined : { ...found, ...withoutRule };
}

function foreignAbove({ family, expected, result, links, assessment }: RoutingCheck, decided: RuleMessage): Finding {
  const element = ruleElement(decided, family);
  const found = assessment.about(element, ['foreign-rule-above-ours', 'mark-collision', 'foreign-rule-priority']);
  if (found !== undefined) return { ...found, severity: 'error' };
  const outcome = result.kind === 'route' ? `to "${routeText(result.route, links)}"` : refusalText(result.code);
  return finding('foreign-rule-above-ours', {
    what: `rule "${ruleText(decided)}" catches the packet before ours at ${expected.rule?.priority}: ${outcome}`,
    fix: [renderRule('delete', { ...decided, family: addressFamily(family) })],
    subjects: [element],
  });
}

/**
 * What the assessment says of the route that the packet takes in the place of the expected one, of the link that the expected one
 * needs, and of the expected one itself.
 */
function routeFault(check: RoutingCheck, route: RouteMessage | undefined): Finding {
  const { expected, result, links, family, assessment } = check;
  if (expected.cause !== undefined) return expected.cause;
  const about = ({ table, dst }: { readonly table: number; readonly dst?: string | undefined }) => {
    const element = routeId(table, dst === undefined || dst === 'default' ? anyPrefix(family) : dst);
    return assessment.about(element, ROUTE_FAULTS, family);
  };
  const refusing = result.kind === 'refused' ? result.route : undefined;
  // One of ours refuses what no other route leads: the fault is that the expected one is missing.
  const foreign = refusing?.protocol === RTPROT_TKE_ENI ? undefined : refusing;
  const thrown = result.passed.find((passed) => passed.rule.table === expected.table && passed.why === 'throw')?.route;
  const other = route ?? refusing;
  const found =
    (foreign && about(foreign)) ??
    (thrown && about(thrown)) ??
    linkFault(check) ??
    about(expected) ??
    (route && about(route));
  if (found !== undefined) return found;
  const instead = other === undefined ? 'nothing else leads there' : `"${routeText(other, links)}" answers instead`;
  return finding('route-missing', {
    what: `${expected.what} is not in table ${expected.table}; ${instead}`,
    fix: ['tke-eni repair'],
    subjects: [routeId(expected.table, expected.dst), tableId(expected.table)],
  });
}

const ROUTE_FAULTS: readonly FindingId[] = [
  'route-missing',
  'route-wrong-device',
  'attribute-changed',
  'blackhole-route',
  'foreign-route',
  'table-collision',
];

/**
 * What the assessment says of a link that is missing, down or without its address: the kernel deletes the routes of such a
 * link.
 */
function linkFault({ expected: { eni, pod, oif }, family, assessment }: RoutingCheck): Finding | undefined {
  if (eni !== undefined && eni.link === undefined) return assessment.about(eniId(eniIdOf(eni)), ['eni-detached']);
  if (eni?.link !== undefined)
    return assessment.about(linkId(eni.link.ifindex), ['eni-down', 'eni-without-address'], family);
  if (pod !== undefined && pod.veth === undefined) return assessment.about(podId(pod.pod.key), ['veth-missing']);
  return pod?.veth?.ifindex === oif ? assessment.about(linkId(oif ?? 0), ['veth-down']) : undefined;
}

function twoOwners({ links, assessment }: RoutingCheck, route: RouteMessage): Finding {
  const ip = (route.dst ?? '').split('/')[0] ?? '';
  const found = assessment.about(`address:${ip}`, ['address-two-owners']);
  if (found !== undefined) return found;
  return finding('address-two-owners', {
    what: `${ip} is an address of the node itself, on ${linkName(links, route.oif)}: packets for the Pod end there`,
    fix: [`ip address del ${hostPrefix(ip)} dev ${linkName(links, route.oif)}`],
    subjects: [`address:${ip}`, linkId(route.oif ?? 0)],
    isOurs: false,
  });
}
