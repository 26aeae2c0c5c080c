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
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../netlink/uapi/fib-rules.ts';
import {
  RT_TABLE_LOCAL,
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_UNREACHABLE,
  RTPROT_KERNEL,
} from '../../netlink/uapi/rtnetlink.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { routeId, tableId } from '../catalogue/element-id.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import { narrowSelectorOf } from '../faults/narrow-selector.ts';
import type { DifferenceOwner, ObjectNames } from '../model/build-names.ts';
import type { ModelPod, NodeModel } from '../model/node-model.ts';
import { isOurRule } from '../node/build-owner-index.ts';
import { findCatchingRoute } from '../node/find-catching-route.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import { ruleElement } from '../node/rule-selector.ts';
import type { Difference } from './difference.ts';

/** Types of routes that end a packet; one of type throw sends it on to the next rule. */
const REFUSING: ReadonlySet<number> = new Set([RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT]);

const DROPPING: readonly number[] = [FR_ACT_BLACKHOLE, FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT];
const MAX_OUR_PRIORITY = Math.max(...OUR_PRIORITIES);

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

/** Returns rules and routes of other programs that conflict with ours, and the kernel's own that are gone. None is ours to change. */
export function compareForeignObjects(
  desired: DesiredNode,
  model: NodeModel,
  names: ObjectNames,
): readonly Difference[] {
  const { rules, routes } = model.facts.host;
  const { nameOf } = model;
  return [
    ...[...model.families].flatMap((family) => localRuleMissing(rules, family, names)),
    ...rules.flatMap((rule) => foreignRule(desired, model, rule, names)),
    ...routes
      .filter((route) => mayMatter(desired, route))
      .flatMap((route) => foreignRoute(desired, route, nameOf, names)),
    ...routes
      .filter((route) => isAboveOurs(model, route))
      .map((route) => refusingRoute(route, nameOf, names.ofAddress(route.dst ?? ''), names)),
  ];
}

/** No rule leads to table local: then the node takes no packet that is for itself. */
function localRuleMissing(rules: readonly RuleMessage[], family: 4 | 6, names: ObjectNames): readonly Difference[] {
  const isThere = rules.some(
    (rule) =>
      familyOfMessage(rule) === family &&
      rule.table === RT_TABLE_LOCAL &&
      [rule.src, rule.dst, rule.iifname, rule.oifname, rule.fwmark].every((selector) => selector === undefined),
  );
  if (isThere || rules.length === 0) return [];
  const details = {
    what: `there is no IPv${family} rule that leads to table local: the node takes no packet that is for itself, as from Pods to its services`,
    fix: [`${family === 4 ? 'ip' : 'ip -6'} rule add pref 0 from all lookup local`],
    subjects: [tableId(RT_TABLE_LOCAL)],
  };
  return [{ ...foreignDifference('rule-missing', details, { kind: 'node' }, names), family }];
}

const RULE_FINDINGS: Partial<Readonly<Record<Conflict['kind'], FindingId>>> = {
  rule: 'rule-duplicate',
  table: 'foreign-rule-to-our-table',
  mark: 'mark-collision',
  priority: 'foreign-rule-priority',
};

function foreignRule(
  desired: DesiredNode,
  model: NodeModel,
  rule: RuleMessage,
  names: ObjectNames,
): readonly Difference[] {
  const observed = toRule(rule);
  const [conflict] = ruleConflicts(desired.host, { ...NOTHING_OBSERVED, rules: [observed] });
  const capture = isOurRule(rule) || isKernels(rule) ? undefined : captureOf(rule, model);
  // One with a mark of ours, or at a priority of ours, may stand before ours all the same.
  const id = conflict === undefined ? undefined : RULE_FINDINGS[conflict.kind];
  const remove = renderRule('delete', rule);
  const subjects = [ruleElement(rule)];
  const isInOurPlace = conflict?.kind === 'rule' || conflict?.kind === 'table';
  if (conflict !== undefined && id !== undefined && (isInOurPlace || capture === undefined)) {
    const isTwice = conflict.kind === 'rule' && model.facts.host.rules.some((other) => isOurTwin(other, observed));
    const twin = `IPv${observed.family} rule "${observed.shown}" of another program equals one of ours, which is there too`;
    const details = { what: isTwice ? twin : conflict.message, fix: [remove], subjects };
    return [foreignDifference(id, details, names.ofTable(rule.table), names)];
  }
  if (capture === undefined) return [];
  const { text, severity, pod } = capture;
  const what = `rule "${remove.replace(/^ip (-6 )?rule del(ete)? /, '')}" ${text}`;
  const fix = [remove, `or have its owner use a priority above ${PRIORITY.fromEniPrimary}`];
  const owner: DifferenceOwner = { kind: 'pod', key: pod.pod.key };
  return [foreignDifference('foreign-rule-above-ours', { what, fix, subjects, severity }, owner, names)];
}

/** Returns whether the kernel creates the rule in every network namespace. */
function isKernels({ priority, protocol }: RuleMessage): boolean {
  return (
    priority === 0 ||
    priority === 32766 ||
    priority === 32767 ||
    (protocol === RTPROT_KERNEL && priority > MAX_OUR_PRIORITY)
  );
}

/** How a rule captures packets of Pods before our rules; `pod`: the first of them. */
type Capture = { readonly text: string; readonly severity: 'error' | 'warning'; readonly pod: ModelPod };

/** Returns how a rule captures packets of Pods before our rules; undefined when it does not. */
function captureOf(rule: RuleMessage, model: NodeModel): Capture | undefined {
  const pod = rule.priority > MAX_OUR_PRIORITY ? undefined : podFor(rule, model);
  if (pod === undefined) return undefined;
  const narrow = narrowSelectorOf(rule);
  if (DROPPING.includes(rule.action)) {
    const { packets, isWholeProtocol } = narrow ?? { packets: 'packets', isWholeProtocol: true };
    const text = `is asked before ours and drops ${packets} of ${pod.name}`;
    return { text, severity: isWholeProtocol ? 'error' : 'warning', pod };
  }
  // A rule that leads some packets to another table is mostly meant.
  if (narrow !== undefined) return undefined;
  if (rule.action === FR_ACT_GOTO) {
    const text = `is asked before ours and passes over them, for ${pod.name}`;
    return (rule.goto ?? 0) > PRIORITY.eniMark ? { text, severity: 'error', pod } : undefined;
  }
  if (rule.action !== FR_ACT_TO_TBL || model.tables.has(rule.table)) return undefined;
  const ips = model.pods.flatMap((each) => each.ips);
  const caught = findCatchingRoute(model.facts.host.routes, rule, ips);
  if (caught === undefined) return undefined;
  const text = `is asked before ours, and leads packets of ${pod.name} to ${caught.dst ?? 'the default route'} of table ${rule.table}`;
  return { text, severity: 'error', pod };
}

/** Returns the first Pod of which a rule can match packets; only its marks, addresses and incoming link count. */
function podFor(rule: RuleMessage, { pods, enis, markBits }: NodeModel): ModelPod | undefined {
  // These select packets of the node's own sockets.
  if (rule.uidRange !== undefined || rule.oifname !== undefined) return undefined;
  const [first] = pods;
  const isByEni = enis.some(({ ifname }) => ifname === rule.iifname);
  const sending =
    rule.iifname === undefined || isByEni ? pods : pods.filter(({ veth }) => veth?.ifname === rule.iifname);
  if (sending.length === 0) return undefined;
  // "not fwmark X" matches every packet without that mark, also of Pods.
  if ((rule.flags & FIB_RULE_INVERT) !== 0) return rule.src === undefined && rule.dst === undefined ? first : undefined;
  if (rule.fwmark !== undefined && rule.fwmark !== 0) {
    return ((rule.fwmask ?? 0xffffffff) & markBits) !== 0 && (rule.fwmark & ~markBits) === 0 ? first : undefined;
  }
  const hasPod = (prefix: string | undefined, pod: ModelPod) =>
    pod.ips.some((ip) => familyOf(ip) === familyOfMessage(rule) && prefixContains(prefix, ip));
  // A rule from a Pod to a single destination is regarded as intended.
  if (rule.dst === undefined) return sending.find((pod) => hasPod(rule.src, pod));
  return pods.find((pod) => hasPod(rule.dst, pod));
}

function isOurTwin(rule: RuleMessage, other: ObservedRule): boolean {
  return rule.protocol === RTPROT_TKE_ENI && ruleKey(toRule(rule)) === ruleKey(other);
}

/** Returns whether a route of table local, which is looked up before ours, refuses packets to a Pod. */
function isAboveOurs({ pods }: NodeModel, { table, type, dst }: RouteMessage): boolean {
  return (
    table === RT_TABLE_LOCAL && REFUSING.has(type) && pods.some(({ ips }) => ips.some((ip) => prefixContains(dst, ip)))
  );
}

function refusingRoute(
  route: RouteMessage,
  nameOf: (ifindex: number) => string,
  owner: DifferenceOwner,
  names: ObjectNames,
): Difference {
  const remove = renderRoute('delete', route, nameOf);
  const details = {
    what: `table local has "${shownRoute(remove)}", which drops packets`,
    fix: [remove, 'stop the program that adds it'],
    subjects: [routeId(route.table, route.dst ?? 'default')],
  };
  return foreignDifference('blackhole-route', details, owner, names);
}

function shownRoute(remove: string): string {
  return remove.replace(/^(ip(?: -6)?) route del(?:ete)? /, '');
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
  const shown = shownRoute(remove);
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
  details: {
    readonly what: string;
    readonly fix: readonly string[];
    readonly subjects: readonly string[];
    readonly severity?: 'error' | 'warning';
  },
  owner: DifferenceOwner,
  names: ObjectNames,
): Difference {
  return { ...finding(id, { ...details, isOurs: false }), whose: names.text(owner), owner, changes: [] };
}
