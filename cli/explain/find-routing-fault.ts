import { familyOf, hostPrefix } from '../../dataplane/ip-prefix.ts';
import { OUR_PRIORITIES, RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage, RuleSpec } from '../../netlink/rule-message.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { eniId, linkId, podId, routeId, tableId } from '../node/element-id.ts';
import { ruleElement } from '../node/rule-selector.ts';
import { bitsOf } from './find-prefix.ts';
import type { Reading } from './find-route.ts';
import { type EniView, linkName, type PodView } from './find-situation.ts';
import { refusalText, routeText, ruleText } from './find-text.ts';
import { addressFamily } from './flow.ts';

/** The route that a packet should take. */
export type Leads = {
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
  readonly eni?: EniView;
  readonly pod?: PodView;
  /** Another link from which the source is also valid: a packet that leaves there arrives, but not as planned. */
  readonly orBy?: number;
};

/** Input of the check. */
type Judged = {
  readonly family: 4 | 6;
  readonly reading: Reading;
  /** The route that counts: the simulated one, or the kernel's where they differ. */
  readonly route: RouteMessage | undefined;
  readonly oif: number | undefined;
  readonly gateway: string | undefined;
  readonly leads: Leads;
  readonly rules: readonly RuleMessage[];
  readonly links: readonly LinkMessage[];
};

const REPAIR = 'tke-eni repair';

/**
 * Finds why a packet does not take its expected route; undefined when it does. `place` says which hop shows the fault.
 */
export function findRoutingFault(judged: Judged): RoutingFault | undefined {
  const fault = faultOf(judged);
  const { orBy } = judged.leads;
  if (fault === undefined || orBy === undefined || judged.oif !== orBy) return fault;
  return { ...fault, finding: { ...fault.finding, severity: 'warning' } };
}

/** A fault of the routing, and the hop that shows it. */
type RoutingFault = { readonly place: 'rule' | 'route'; readonly finding: Finding };

function faultOf(judged: Judged): RoutingFault | undefined {
  const { leads, route, reading } = judged;
  if (route !== undefined && isLedWell(judged, route)) {
    const found = ruleFault(judged, 'warning') ?? duplicateFault(judged);
    return found === undefined ? undefined : { place: 'rule', finding: found };
  }
  if (route?.type === RTN_LOCAL && leads.oif !== undefined)
    return { place: 'route', finding: twoOwners(judged, route) };
  const decided = reading.rule;
  if (decided !== undefined && isForeignAbove(judged, decided))
    return { place: 'rule', finding: foreignAbove(judged, decided) };
  const missing = ruleFault(judged, undefined);
  if (missing !== undefined) return { place: 'rule', finding: missing };
  return { place: 'route', finding: routeFault(judged, route) };
}

function isLedWell({ leads, oif, gateway }: Judged, route: RouteMessage): boolean {
  if (leads.oif === undefined) return route.type === RTN_LOCAL;
  if (route.type !== RTN_UNICAST || oif !== leads.oif) return false;
  return leads.gateway === undefined || gateway === undefined || gateway === leads.gateway;
}

function isForeignAbove({ leads, rules, family }: Judged, decided: RuleMessage): boolean {
  const isOurs = decided.protocol === RTPROT_TKE_ENI;
  const isKernels = decided.priority === 0 || decided.priority >= 32766;
  if (isOurs || isKernels || leads.rule === undefined) return false;
  const wanted = rules.find((rule) => isWanted(rule, leads.rule, family));
  return decided.priority <= leads.rule.priority && decided !== wanted;
}

function foreignAbove({ family, leads, reading, links }: Judged, decided: RuleMessage): Finding {
  const leadsTo = reading.kind === 'route' ? `to "${routeText(reading.route, links)}"` : refusalText(reading.code);
  return finding('foreign-rule-above-ours', {
    what: `rule "${ruleText(decided)}" (protocol ${decided.protocol ?? 'none'}) catches the packet before ours at ${leads.rule?.priority}: ${leadsTo}`,
    fix: [
      renderRule('delete', withoutDefaults(decided, family)),
      'stop the program that adds it, or give it a priority above 1537',
    ],
    subjects: [ruleElement(decided, family)],
  });
}

/** Reports that the expected rule is missing or looks up another table. */
function ruleFault(judged: Judged, severity: Finding['severity'] | undefined): Finding | undefined {
  const { leads, rules, family } = judged;
  const { rule: wanted } = leads;
  if (wanted === undefined || rules.some((rule) => isWanted(rule, wanted, family))) return undefined;
  const subjects = [ruleElement(wanted, family)];
  const weight = severity === undefined ? {} : { severity };
  const other = rules.find((rule) => isSameSelector(rule, wanted, family) && rule.priority === wanted.priority);
  if (other !== undefined) {
    return finding('rule-wrong-table', {
      what: `rule "${ruleText(other)}" should look up table ${wanted.table}`,
      fix: [REPAIR, `${renderRule('add', wanted)}`, renderRule('delete', withoutDefaults(other, family))],
      subjects,
      ...weight,
    });
  }
  const stands = rules.find((rule) => isSameSelector(rule, wanted, family) && rule.table === wanted.table);
  const elsewhere = stands === undefined ? '' : `; it stands at ${stands.priority}`;
  return finding('rule-missing', {
    what: `there is no IPv${family} rule "${ruleText(wanted)}"${elsewhere}`,
    fix: [REPAIR, renderRule('add', wanted)],
    subjects,
    ...weight,
  });
}

function duplicateFault({ leads, rules, family }: Judged): Finding | undefined {
  const { rule: wanted } = leads;
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

function routeFault(judged: Judged, route: RouteMessage | undefined): Finding {
  const { leads, reading, links } = judged;
  const refusing = reading.kind === 'refused' ? reading.route : undefined;
  if (refusing !== undefined) {
    const isOurs = refusing.protocol === RTPROT_TKE_ENI;
    return finding('blackhole-route', {
      what: `"${routeText(refusing, links)}" catches the packet: ${refusalText(reading.kind === 'refused' ? reading.code : '')}`,
      fix: [...(isOurs ? [REPAIR] : []), `ip route del ${routeText(refusing, links)}`],
      subjects: [routeId(refusing.table, refusing.dst ?? 'default')],
    });
  }
  const thrown = reading.passed.find((passed) => passed.rule.table === leads.table && passed.why === 'throw')?.route;
  if (thrown !== undefined) {
    return finding('table-collision', {
      what: `"${routeText(thrown, links)}" (protocol ${thrown.protocol}, not ours) sends the packet on to later rules`,
      fix: [`ip route del ${routeText(thrown, links)}`, 'stop the program that adds it'],
      subjects: [routeId(thrown.table, thrown.dst ?? 'default')],
    });
  }
  const cause = linkFault(leads, judged.family);
  if (cause !== undefined) return cause;
  // Another route matched. Either a wrong one in the right table, or one of a later rule because the expected route is
  // missing. A route with a shorter prefix matches because the expected one is missing; it is itself correct.
  const isInPlace =
    route?.table === leads.table && bitsOf(route.dst) >= (leads.dst === 'default' ? 0 : bitsOf(leads.dst));
  if (route !== undefined && isInPlace) return wrongRoute(judged, route);
  const instead = route === undefined ? 'nothing else leads there' : `"${routeText(route, links)}" answers instead`;
  return finding('route-missing', {
    what: `${leads.what} is not in table ${leads.table}; ${instead}`,
    fix: [REPAIR],
    subjects: [routeId(leads.table, leads.dst), tableId(leads.table)],
  });
}

function wrongRoute({ leads, links, oif, gateway }: Judged, route: RouteMessage): Finding {
  const subjects = [routeId(route.table, route.dst ?? 'default')];
  const should = `${leads.what} should lead to ${linkName(links, leads.oif)}${leads.gateway === undefined ? '' : ` via ${leads.gateway}`}`;
  const is = `"${routeText(route, links)}" leads to ${linkName(links, oif)}${gateway === undefined ? '' : ` via ${gateway}`}`;
  if (route.protocol === RTPROT_TKE_ENI) {
    return finding('route-wrong-device', { what: `${is}; ${should}`, fix: [REPAIR], subjects });
  }
  return finding(leads.table === route.table && leads.eni !== undefined ? 'table-collision' : 'foreign-route', {
    what: `${is} (protocol ${route.protocol}, not ours); ${should}`,
    fix: [`ip route del ${routeText(route, links)}`, 'stop the program that adds it', REPAIR],
    subjects,
  });
}

/**
 * Finds a link that is missing, down or without its address. The kernel deletes the routes of such a link: that is the
 * cause.
 */
function linkFault({ eni, pod, oif }: Leads, family: 4 | 6): Finding | undefined {
  if (eni !== undefined && eni.link === undefined) return eniDetached(eni);
  if (eni?.link !== undefined && (eni.link.flags & IFF_UP) === 0) return eniDown(eni);
  if (eni?.missing.some((ip) => familyOf(ip) === family)) return eniWithoutAddress(eni);
  if (pod !== undefined && pod.veth === undefined) return vethMissing(pod);
  if (pod?.veth !== undefined && oif === pod.veth.ifindex && (pod.veth.flags & IFF_UP) === 0) return vethDown(pod);
  return undefined;
}

/** Reports that the ENI is not on the node. */
export function eniDetached(eni: EniView): Finding {
  return finding('eni-detached', {
    what: `${eni.title}${eni.mac === undefined ? '' : ` with MAC ${eni.mac}`} is not on this node: its link is gone`,
    fix: ['look at the ENI in the console and at `kubectl describe nec`', 'delete its Pods if it does not come back'],
    subjects: [eniId(eni.eniId ?? String(eni.table))],
  });
}

/** Reports that the ENI is down. */
export function eniDown(eni: EniView): Finding {
  return finding('eni-down', {
    what: `${eni.title} is down, and so table ${eni.table} has lost its routes`,
    fix: [REPAIR, `ip link set ${eni.ifname} up`],
    subjects: [eniId(eni.eniId ?? String(eni.table)), linkId(eni.link?.ifindex ?? 0)],
  });
}

/** Reports that the ENI lacks a primary address. */
export function eniWithoutAddress(eni: EniView, severity?: Finding['severity']): Finding {
  return finding('eni-without-address', {
    what: `${eni.title} does not have its own address ${eni.missing.join(', ')}`,
    fix: [REPAIR, ...eni.missing.map((ip) => `ip address add ${hostPrefix(ip)} dev ${eni.ifname}`)],
    subjects: [eniId(eni.eniId ?? String(eni.table)), linkId(eni.link?.ifindex ?? 0)],
    ...(severity === undefined ? {} : { severity }),
  });
}

/** Reports that the Pod has no host interface. */
export function vethMissing(pod: PodView): Finding {
  return finding('veth-missing', {
    what: `the host interface ${pod.lease?.hostVeth?.name ?? ''} of ${pod.title} is not there`,
    fix: ['delete the Pod: a running container gets no new interface'],
    subjects: [podId(pod.pod.key)],
  });
}

/** Reports that the Pod's host interface is down. */
export function vethDown(pod: PodView): Finding {
  return finding('veth-down', {
    what: `the host interface ${pod.veth?.ifname} of ${pod.title} is down`,
    fix: [REPAIR, `ip link set ${pod.veth?.ifname} up`],
    subjects: [linkId(pod.veth?.ifindex ?? 0), podId(pod.pod.key)],
  });
}

function twoOwners({ links }: Judged, route: RouteMessage): Finding {
  const ip = (route.dst ?? '').split('/')[0] ?? '';
  return finding('address-two-owners', {
    what: `${ip} is an address of the node itself, on ${linkName(links, route.oif)}: packets for the Pod end there`,
    fix: [`ip address del ${hostPrefix(ip)} dev ${linkName(links, route.oif)}`],
    subjects: [`address:${ip}`, linkId(route.oif ?? 0)],
    isOurs: false,
  });
}

function isWanted(rule: RuleMessage, wanted: RuleSpec | undefined, family: 4 | 6): boolean {
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
    rule.iifname === undefined &&
    rule.oifname === undefined &&
    rule.ipProto === undefined &&
    rule.flags === 0
  );
}

/** Returns the rule as `ip rule del` needs it to match exactly this one. */
function withoutDefaults(rule: RuleMessage, family: 4 | 6): RuleSpec {
  return { ...rule, family: addressFamily(family) };
}
