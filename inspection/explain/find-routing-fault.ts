import { addressFamily } from '../../dataplane/address-family.ts';
import { familyOf, hostPrefix } from '../../dataplane/ip-prefix.ts';
import { OUR_PRIORITIES, RTPROT_TKE_ENI, TABLE_PODLESS } from '../../dataplane/numbers.ts';
import { toRule } from '../../dataplane/to-state.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId, routeId, tableId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { prefixBits } from '../node/prefix-contains.ts';
import { ruleElement } from '../node/rule-selector.ts';
import { type ExplainedEni, type ExplainedPod, linkName } from './explain-context.ts';
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
  readonly eni?: ExplainedEni;
  readonly pod?: ExplainedPod;
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
};

const REPAIR = 'tke-eni repair';

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
    const found = ruleFault(check, 'warning') ?? duplicateFault(check);
    return found === undefined ? undefined : { hop: 'rule', finding: found };
  }
  if (route?.type === RTN_LOCAL && expected.oif !== undefined)
    return { hop: 'route', finding: twoOwners(check, route) };
  const podless = podlessFault(check);
  if (podless !== undefined) return { hop: 'route', finding: podless };
  const decided = result.rule;
  if (decided !== undefined && isForeignAbove(check, decided))
    return { hop: 'rule', finding: foreignAbove(check, decided) };
  const missing = ruleFault(check, undefined);
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

function foreignAbove({ family, expected, result, links }: RoutingCheck, decided: RuleMessage): Finding {
  const outcome = result.kind === 'route' ? `to "${routeText(result.route, links)}"` : refusalText(result.code);
  return finding('foreign-rule-above-ours', {
    what: `rule "${ruleText(decided)}" (protocol ${decided.protocol ?? 'none'}) catches the packet before ours at ${expected.rule?.priority}: ${outcome}`,
    fix: [
      renderRule('delete', withoutDefaults(decided, family)),
      'stop the program that adds it, or give it a priority above 1537',
    ],
    subjects: [ruleElement(decided, family)],
  });
}

/** Reports that the expected rule is missing or looks up another table. */
function ruleFault(check: RoutingCheck, severity: Finding['severity'] | undefined): Finding | undefined {
  const { expected, rules, family } = check;
  const { rule: wanted } = expected;
  if (wanted === undefined || rules.some((rule) => isExpectedRule(rule, wanted, family))) return undefined;
  const subjects = [ruleElement(wanted, family)];
  const weight = { ...expected.withoutRule, ...(severity === undefined ? {} : { severity }) };
  const other = rules.find((rule) => isSameSelector(rule, wanted, family) && rule.priority === wanted.priority);
  if (other !== undefined) {
    return finding('rule-wrong-table', {
      what: `rule "${ruleText(other)}" should look up table ${wanted.table}`,
      fix: [REPAIR, `${renderRule('add', wanted)}`, renderRule('delete', withoutDefaults(other, family))],
      subjects,
      ...weight,
    });
  }
  const misplaced = rules.find((rule) => isSameSelector(rule, wanted, family) && rule.table === wanted.table);
  const elsewhere = misplaced === undefined ? '' : `; it stands at ${misplaced.priority}`;
  return finding('rule-missing', {
    what: `there is no IPv${family} rule "${ruleText(wanted)}"${elsewhere}`,
    fix: [REPAIR, renderRule('add', wanted)],
    subjects,
    ...weight,
  });
}

function duplicateFault({ expected, rules, family }: RoutingCheck): Finding | undefined {
  const { rule: wanted } = expected;
  if (wanted === undefined) return undefined;
  const same = rules.filter(
    (rule) =>
      isSameSelector(rule, wanted, family) &&
      rule.table === wanted.table &&
      (rule.protocol === RTPROT_TKE_ENI || OUR_PRIORITIES.includes(rule.priority)),
  );
  const extra = same.find((rule) => rule.priority !== wanted.priority) ?? same[1];
  if (same.length < 2 || extra === undefined) return undefined;
  return finding('rule-duplicate', {
    what: `rule "${ruleText(wanted)}" is there ${same.length} times, at ${same.map(({ priority }) => priority).join(' and ')}`,
    fix: [REPAIR, renderRule('delete', withoutDefaults(extra, family))],
    subjects: [ruleElement(extra, family)],
  });
}

function routeFault(check: RoutingCheck, route: RouteMessage | undefined): Finding {
  const { expected, result, links } = check;
  if (expected.cause !== undefined) return expected.cause;
  const refusing = result.kind === 'refused' ? result.route : undefined;
  // One of ours refuses what no other route leads: the fault is that the expected one is missing.
  if (refusing !== undefined && refusing.protocol !== RTPROT_TKE_ENI) {
    return finding('blackhole-route', {
      what: `"${routeText(refusing, links)}" catches the packet: ${refusalText(result.kind === 'refused' ? result.code : '')}`,
      fix: [`ip route del ${routeText(refusing, links)}`, REPAIR],
      subjects: [routeId(refusing.table, refusing.dst ?? 'default')],
    });
  }
  const thrown = result.passed.find((passed) => passed.rule.table === expected.table && passed.why === 'throw')?.route;
  if (thrown !== undefined) {
    return finding('table-collision', {
      what: `"${routeText(thrown, links)}" (protocol ${thrown.protocol}, not ours) sends the packet on to later rules`,
      fix: [`ip route del ${routeText(thrown, links)}`, 'stop the program that adds it'],
      subjects: [routeId(thrown.table, thrown.dst ?? 'default')],
    });
  }
  const cause = linkFault(expected, check.family);
  if (cause !== undefined) return cause;
  // Another route matched. Either a wrong one in the right table, or one of a later rule because the expected route is
  // missing. A route with a shorter prefix matches because the expected one is missing; it is itself correct.
  const isInExpectedTable =
    route?.table === expected.table &&
    prefixBits(route.dst) >= (expected.dst === 'default' ? 0 : prefixBits(expected.dst));
  if (route !== undefined && isInExpectedTable) return wrongRoute(check, route);
  const other = route ?? refusing;
  const instead = other === undefined ? 'nothing else leads there' : `"${routeText(other, links)}" answers instead`;
  return finding('route-missing', {
    what: `${expected.what} is not in table ${expected.table}; ${instead}`,
    fix: [REPAIR],
    subjects: [routeId(expected.table, expected.dst), tableId(expected.table)],
  });
}

function wrongRoute({ expected, links, oif, gateway }: RoutingCheck, route: RouteMessage): Finding {
  const subjects = [routeId(route.table, route.dst ?? 'default')];
  const should = `${expected.what} should lead to ${linkName(links, expected.oif)}${expected.gateway === undefined ? '' : ` via ${expected.gateway}`}`;
  const is = `"${routeText(route, links)}" leads to ${linkName(links, oif)}${gateway === undefined ? '' : ` via ${gateway}`}`;
  if (route.protocol === RTPROT_TKE_ENI) {
    return finding('route-wrong-device', { what: `${is}; ${should}`, fix: [REPAIR], subjects });
  }
  return finding(expected.table === route.table && expected.eni !== undefined ? 'table-collision' : 'foreign-route', {
    what: `${is} (protocol ${route.protocol}, not ours); ${should}`,
    fix: [`ip route del ${routeText(route, links)}`, 'stop the program that adds it', REPAIR],
    subjects,
  });
}

/**
 * Finds a link that is missing, down or without its address. The kernel deletes the routes of such a link: that is the
 * cause.
 */
function linkFault({ eni, pod, oif }: ExpectedRoute, family: 4 | 6): Finding | undefined {
  if (eni !== undefined && eni.link === undefined) return eniDetached(eni);
  if (eni?.link !== undefined && (eni.link.flags & IFF_UP) === 0) return eniDown(eni);
  if (eni?.missing.some((ip) => familyOf(ip) === family)) return eniWithoutAddress(eni);
  if (pod !== undefined && pod.veth === undefined) return vethMissing(pod);
  if (pod?.veth !== undefined && oif === pod.veth.ifindex && (pod.veth.flags & IFF_UP) === 0) return vethDown(pod);
  return undefined;
}

/** Reports that the ENI is not on the node. */
export function eniDetached(eni: ExplainedEni): Finding {
  return finding('eni-detached', {
    what: `${eni.title}${eni.mac === undefined ? '' : ` with MAC ${eni.mac}`} is not on this node: its link is gone`,
    fix: ['look at the ENI in the console and at `kubectl describe nec`', 'delete its Pods if it does not come back'],
    subjects: [eniId(eni.eniId ?? String(eni.table))],
  });
}

/** Reports that the ENI is down. */
export function eniDown(eni: ExplainedEni): Finding {
  return finding('eni-down', {
    what: `${eni.title} is down, and so table ${eni.table} has lost its routes`,
    fix: [REPAIR, `ip link set ${eni.ifname} up`],
    subjects: [eniId(eni.eniId ?? String(eni.table)), linkId(eni.link?.ifindex ?? 0)],
  });
}

/** Reports that the ENI lacks a primary address. */
export function eniWithoutAddress(eni: ExplainedEni, severity?: Finding['severity']): Finding {
  return finding('eni-without-address', {
    what: `${eni.title} does not have its own address ${eni.missing.join(', ')}`,
    fix: [REPAIR, ...eni.missing.map((ip) => `ip address add ${hostPrefix(ip)} dev ${eni.ifname}`)],
    subjects: [eniId(eni.eniId ?? String(eni.table)), linkId(eni.link?.ifindex ?? 0)],
    ...(severity === undefined ? {} : { severity }),
  });
}

/** Reports that the Pod has no host interface. */
export function vethMissing(pod: ExplainedPod): Finding {
  return finding('veth-missing', {
    what: `the host interface ${pod.lease?.hostVeth?.name ?? ''} of ${pod.title} is not there`,
    fix: ['delete the Pod: a running container gets no new interface'],
    subjects: [podId(pod.pod.key)],
  });
}

/** Reports that the Pod's host interface is down. */
export function vethDown(pod: ExplainedPod): Finding {
  return finding('veth-down', {
    what: `the host interface ${pod.veth?.ifname} of ${pod.title} is down`,
    fix: [REPAIR, `ip link set ${pod.veth?.ifname} up`],
    subjects: [linkId(pod.veth?.ifindex ?? 0), podId(pod.pod.key)],
  });
}

/**
 * Reports that the host end of a Pod's veth pair does not have the MAC that the Pod sends to: a permanent neighbour
 * entry in the Pod holds the one that the agent set.
 */
export function vethMacChanged({ veth, lease, title, pod }: ExplainedPod): Finding | undefined {
  const wanted = lease?.hostVeth?.mac;
  if (wanted === undefined || veth?.address === undefined || veth.address === wanted) return undefined;
  return finding('veth-mac-changed', {
    what: `${veth.ifname} has MAC ${veth.address}; ${title} sends to ${wanted}, which we gave it`,
    fix: [REPAIR, `ip link set ${veth.ifname} address ${wanted}`],
    subjects: [linkId(veth.ifindex), podId(pod.key)],
  });
}

function twoOwners({ links }: RoutingCheck, route: RouteMessage): Finding {
  const ip = (route.dst ?? '').split('/')[0] ?? '';
  return finding('address-two-owners', {
    what: `${ip} is an address of the node itself, on ${linkName(links, route.oif)}: packets for the Pod end there`,
    fix: [`ip address del ${hostPrefix(ip)} dev ${linkName(links, route.oif)}`],
    subjects: [`address:${ip}`, linkId(route.oif ?? 0)],
    isOurs: false,
  });
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

/** Returns the rule as `ip rule del` needs it to match exactly this one. */
function withoutDefaults(rule: RuleMessage, family: 4 | 6): RuleSpec {
  return { ...rule, family: addressFamily(family) };
}
