import { familyOfMessage } from '../../dataplane/address-family.ts';
import { type Conflict, routeConflicts, ruleConflicts } from '../../dataplane/conflict.ts';
import { routeKey, ruleKey } from '../../dataplane/desired.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import { isOurTable, OUR_PRIORITIES, PRIORITY, RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { ObservedHost, ObservedRule } from '../../dataplane/observed.ts';
import { toRoute, toRule } from '../../dataplane/to-state.ts';
import { renderRoute } from '../../netlink/render-route.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import { FR_ACT_TO_TBL } from '../../netlink/uapi/fib-rules.ts';
import {
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNREACHABLE,
  RTPROT_KERNEL,
} from '../../netlink/uapi/rtnetlink.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { routeId } from '../catalogue/element-id.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import type { DifferenceOwner, ObjectNames } from '../model/build-names.ts';
import { findCatchingRoute } from '../node/find-catching-route.ts';
import type { HostFacts } from '../node/node-facts.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import { ruleElement } from '../node/rule-selector.ts';
import type { Difference } from './difference.ts';

const REFUSING: ReadonlySet<number> = new Set([RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW]);

/** Empty observation. A single rule or route is put into it, so that conflicts of this one alone are found. */
const NOTHING_OBSERVED: ObservedHost = {
  links: [],
  addresses: [],
  routes: [],
  rules: [],
  neighs: [],
  sysctls: new Map(),
  nft: {},
};

type Host = Pick<HostFacts, 'links' | 'routes' | 'rules'>;

/** Returns rules and routes of other programs that conflict with ours. None of them is ours to change. */
export function compareForeignObjects(desired: DesiredNode, host: Host, names: ObjectNames): readonly Difference[] {
  const nameOf = linkNames(host);
  return [
    ...host.rules.flatMap((rule) => foreignRule(desired, host, rule, names)),
    ...host.routes
      .filter((route) => mayMatter(desired, route))
      .flatMap((route) => foreignRoute(desired, route, nameOf, names)),
  ];
}

/** Returns a function from ifindex to link name; a link that does not exist becomes `if<ifindex>`. */
function linkNames({ links }: Pick<Host, 'links'>): (ifindex: number) => string {
  const byIndex = new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  return (ifindex) => byIndex.get(ifindex) ?? `if${ifindex}`;
}

const RULE_FINDINGS: Partial<Readonly<Record<Conflict['kind'], FindingId>>> = {
  rule: 'rule-duplicate',
  table: 'foreign-rule-to-our-table',
  mark: 'mark-collision',
  priority: 'foreign-rule-priority',
};

function foreignRule(desired: DesiredNode, host: Host, rule: RuleMessage, names: ObjectNames): readonly Difference[] {
  const observed = toRule(rule);
  const [conflict] = ruleConflicts(desired.host, { ...NOTHING_OBSERVED, rules: [observed] });
  const id = conflict === undefined ? undefined : RULE_FINDINGS[conflict.kind];
  const remove = renderRule('delete', rule);
  const subjects = [ruleElement(rule)];
  if (conflict !== undefined && id !== undefined) {
    const isTwice = conflict.kind === 'rule' && host.rules.some((other) => isOurTwin(other, observed));
    const twin = `IPv${observed.family} rule "${observed.shown}" of another program equals one of ours, which is there too`;
    const details = { what: isTwice ? twin : conflict.message, fix: [remove], subjects };
    return [foreignDifference(id, details, names.ofTable(rule.table), names)];
  }
  const pod = caughtPod(desired, host, rule);
  if (pod === undefined) return [];
  const owner: DifferenceOwner = { kind: 'pod', key: pod };
  const what = `a rule of another program at priority ${rule.priority}, before ours, catches packets of ${names.text(owner)}: "${remove.replace(' rule del ', ' rule ')}"`;
  const fix = [remove, `or have its owner use a priority above ${PRIORITY.fromEniPrimary}`];
  return [foreignDifference('foreign-rule-above-ours', { what, fix, subjects }, owner, names)];
}

function isOurTwin(rule: RuleMessage, other: ObservedRule): boolean {
  return rule.protocol === RTPROT_TKE_ENI && ruleKey(toRule(rule)) === ruleKey(other);
}

/** Returns the first Pod whose packets match a foreign rule before our rules; undefined when there is none. */
function caughtPod({ networks }: DesiredNode, host: Host, rule: RuleMessage): string | undefined {
  const { priority, protocol, action } = rule;
  const isBefore = priority > 0 && priority < PRIORITY.fromEniPrimary && !OUR_PRIORITIES.includes(priority);
  if (!isBefore || protocol === RTPROT_TKE_ENI || protocol === RTPROT_KERNEL) return undefined;
  // A rule with a mark matches only packets that another program has marked.
  const isSelective = Boolean(rule.fwmark) || rule.ipProto !== undefined || rule.uidRange !== undefined;
  if (isSelective || rule.suppressPrefixlength !== undefined || rule.l3mdev === 1) return undefined;
  const ips = [...networks.values()].flatMap((pod) => pod.ips);
  if (action === FR_ACT_TO_TBL && findCatchingRoute(host.routes, rule, ips) === undefined) return undefined;
  return [...networks].find(([, { ips, hostVeth }]) => {
    const isItsDevice = rule.iifname === undefined || rule.iifname === hostVeth.name;
    return isItsDevice && ips.some((ip) => isOfFamily(rule, ip) && coversPod(rule, ip));
  })?.[0];
}

/**
 * Returns whether a rule matches packets of a Pod by source or by destination, or because it selects by neither. A rule
 * from a Pod to a single destination is regarded as intended.
 */
function coversPod({ src, dst }: RuleMessage, ip: string): boolean {
  if (src === undefined && dst === undefined) return true;
  return (
    (src !== undefined && dst === undefined && prefixContains(src, ip)) ||
    (dst !== undefined && prefixContains(dst, ip))
  );
}

function isOfFamily(rule: RuleMessage, ip: string): boolean {
  return familyOfMessage(rule) === familyOf(ip);
}

function mayMatter(desired: DesiredNode, { protocol, table }: RouteMessage): boolean {
  return (
    protocol !== RTPROT_TKE_ENI && (isOurTable(table) || desired.host.routes.some((route) => route.table === table))
  );
}

function foreignRoute(
  desired: DesiredNode,
  route: RouteMessage,
  nameOf: (ifindex: number) => string,
  names: ObjectNames,
): readonly Difference[] {
  const observed = toRoute(route, nameOf);
  const [conflict] = routeConflicts(desired.host, { ...NOTHING_OBSERVED, routes: [observed] });
  if (conflict === undefined) return [];
  const remove = renderRoute('delete', route, nameOf);
  const shown = remove.replace(/^(ip(?: -6)?) route del(?:ete)? /, '');
  const replacesOurs = desired.host.routes.some((wanted) => routeKey(wanted) === routeKey(observed));
  const where = replacesOurs ? 'stands where ours should' : `is not ours, table ${route.table} is`;
  const byDst = names.ofAddress(observed.dst);
  const owner = byDst.kind === 'node' ? names.ofTable(route.table) : byDst;
  const details = {
    what: `route "${shown}" ${where}`,
    fix: [
      remove,
      ...(replacesOurs ? ['tke-eni repair'] : []),
      'stop the program that adds it, or give it another table',
    ],
    subjects: [routeId(route.table, observed.dst)],
  };
  return [foreignDifference(routeFinding(route, replacesOurs), details, owner, names)];
}

function routeFinding({ type }: RouteMessage, replacesOurs: boolean): FindingId {
  if (REFUSING.has(type)) return 'blackhole-route';
  return replacesOurs ? 'foreign-route' : 'table-collision';
}

function foreignDifference(
  id: FindingId,
  details: { readonly what: string; readonly fix: readonly string[]; readonly subjects: readonly string[] },
  owner: DifferenceOwner,
  names: ObjectNames,
): Difference {
  return { ...finding(id, { ...details, isOurs: false }), whose: names.text(owner), owner, changes: [] };
}
