import { familyOfMessage } from '../../../dataplane/address-family.ts';
import { familyOf } from '../../../dataplane/ip-prefix.ts';
import { OUR_PRIORITIES, RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { routeId, tableId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { narrowSelectorOf } from '../../../inspection/faults/narrow-selector.ts';
import { buildOutline, type Outline } from '../../../inspection/model/build-outline.ts';
import { isOurRule } from '../../../inspection/node/build-owner-index.ts';
import { findCatchingRoute } from '../../../inspection/node/find-catching-route.ts';
import { NODE_TABLE_NAMES } from '../../../inspection/node/merge-table-names.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { prefixContains } from '../../../inspection/node/prefix-contains.ts';
import { ruleElement } from '../../../inspection/node/rule-selector.ts';
import { renderRoute } from '../../../netlink/render-route.ts';
import { renderRule } from '../../../netlink/render-rule.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import {
  FIB_RULE_INVERT,
  FR_ACT_BLACKHOLE,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../../netlink/uapi/fib-rules.ts';
import {
  RT_TABLE_LOCAL,
  RTM_F_CLONED,
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_UNICAST,
  RTN_UNREACHABLE,
  RTPROT_KERNEL,
} from '../../../netlink/uapi/rtnetlink.ts';
import { type Check, done } from './check.ts';

const MAX_OUR_PRIORITY = Math.max(...OUR_PRIORITIES);
const REFUSING: readonly number[] = [RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT];
const DROPPING: readonly number[] = [FR_ACT_BLACKHOLE, FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT];

/** Checks rules of other programs: above ours, at our priorities, into our tables. */
export const RULES_CHECK: Check = {
  id: 'rules',
  scope: 'other programs’ routing rules: above ours, at our priorities, into our tables',
  finds: ['foreign-rule-above-ours', 'foreign-rule-priority', 'foreign-rule-to-our-table', 'rule-missing'],
  evaluate: ({ node }) => {
    const outline = buildOutline(node);
    const foreign = node.host.rules.filter((rule) => !isOurRule(rule) && !isKernels(rule));
    const others = foreign.flatMap((rule): readonly Finding[] => {
      const shown = renderRule('add', rule).replace(/^ip (-6 )?rule add /, '');
      const base = {
        fix: [renderRule('delete', rule)],
        subjects: [ruleElement(rule), tableId(rule.table)],
      };
      const above = captureOf(rule, node, outline);
      if (above !== undefined) {
        const { text, severity } = above;
        return [finding('foreign-rule-above-ours', { what: `rule "${shown}" ${text}`, severity, ...base })];
      }
      if (isToTable(rule) && outline.tables.has(rule.table)) {
        return [
          finding('foreign-rule-to-our-table', {
            what: `rule "${shown}" leads to table ${rule.table} of ours`,
            ...base,
          }),
        ];
      }
      return OUR_PRIORITIES.includes(rule.priority)
        ? [
            finding('foreign-rule-priority', {
              what: `rule "${shown}" stands at priority ${rule.priority} of ours`,
              ...base,
            }),
          ]
        : [];
    });
    const local = [...outline.families].flatMap((family) => localMissing(node, family));
    return done([...local, ...others], [`${node.host.rules.length} rules, ${foreign.length} of them other programs’`]);
  },
};

/** Finds that no rule leads to table local: then the node takes no packet that is for itself. */
function localMissing({ host }: NodeFacts, family: 4 | 6): readonly Finding[] {
  const isThere = host.rules.some(
    (rule) =>
      familyOfMessage(rule) === family &&
      rule.table === RT_TABLE_LOCAL &&
      [rule.src, rule.dst, rule.iifname, rule.oifname, rule.fwmark].every((selector) => selector === undefined),
  );
  if (isThere || host.rules.length === 0) return [];
  const ip = family === 4 ? 'ip' : 'ip -6';
  return [
    finding('rule-missing', {
      what: `there is no IPv${family} rule that leads to table local: the node takes no packet that is for itself, as from Pods to its services`,
      fix: [`${ip} rule add pref 0 from all lookup local`],
      subjects: [tableId(RT_TABLE_LOCAL)],
      isOurs: false,
    }),
  ];
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

function isToTable({ action }: RuleMessage): boolean {
  return action === FR_ACT_TO_TBL;
}

/** How a rule captures packets of Pods before our rules. */
type Capture = { readonly text: string; readonly severity: 'error' | 'warning' };

/** Returns how a rule captures packets of Pods before our rules; undefined when it does not. */
function captureOf(rule: RuleMessage, node: NodeFacts, outline: Outline): Capture | undefined {
  if (rule.priority > MAX_OUR_PRIORITY || !isForPods(rule, outline)) return undefined;
  const narrow = narrowSelectorOf(rule);
  if (DROPPING.includes(rule.action)) {
    const { packets, isWholeProtocol } = narrow ?? { packets: 'packets', isWholeProtocol: true };
    const text = `is asked before ours and drops ${packets} of Pods`;
    return { text, severity: isWholeProtocol ? 'error' : 'warning' };
  }
  // A rule that leads some packets to another table is mostly meant.
  if (narrow !== undefined) return undefined;
  if (!isToTable(rule) || outline.tables.has(rule.table)) return undefined;
  const caught = findCatchingRoute(
    node.host.routes,
    rule,
    outline.pods.flatMap(({ ips }) => ips),
  );
  if (caught === undefined) return undefined;
  return {
    text: `is asked before ours, and table ${rule.table} has ${caught.dst ?? 'a default route'}`,
    severity: 'error',
  };
}

/** Returns whether a rule can match packets from or to Pods; only its marks, addresses and incoming link count. */
function isForPods(rule: RuleMessage, { pods, enis, markBits }: Outline): boolean {
  if (pods.length === 0) return false;
  const vethNames = pods.map(({ hostLink }) => hostLink?.ifname);
  // These select packets of the node's own sockets.
  if (rule.uidRange !== undefined || rule.oifname !== undefined) return false;
  const iifs = [...vethNames, ...enis.map(({ ifname }) => ifname)];
  if (rule.iifname !== undefined && !iifs.includes(rule.iifname)) return false;
  const isInverted = (rule.flags & FIB_RULE_INVERT) !== 0;
  // "not fwmark X" matches every packet without that mark, also of Pods.
  if (isInverted) return rule.src === undefined && rule.dst === undefined;
  if (rule.fwmark !== undefined && rule.fwmark !== 0)
    return ((rule.fwmask ?? 0xffffffff) & markBits) !== 0 && (rule.fwmark & ~markBits) === 0;
  const ips = pods.flatMap((pod) => pod.ips).filter((ip) => familyOf(ip) === familyOfMessage(rule));
  return (
    ips.some((ip) => prefixContains(rule.src, ip)) &&
    (rule.dst === undefined || ips.some((ip) => prefixContains(rule.dst, ip)))
  );
}

/**
 * Checks our routing tables: no routes of other programs are in them, and rt_tables has no other names for their
 * numbers.
 */
export const TABLES_CHECK: Check = {
  id: 'tables',
  scope: 'our routing tables hold our routes alone, no name is registered for their numbers',
  finds: ['table-collision', 'blackhole-route', 'table-name-taken'],
  evaluate: ({ node }) => {
    const { tables, nameOf, enis, pods } = buildOutline(node);
    const foreign = node.host.routes.filter(
      ({ table, protocol, flags, type }) =>
        tables.has(table) && protocol !== RTPROT_TKE_ENI && (flags & RTM_F_CLONED) === 0 && type >= RTN_UNICAST,
    );
    const ips = pods.flatMap((pod) => pod.ips);
    // Table local is looked up before ours.
    const above = node.host.routes.filter(
      ({ table, type, dst }) =>
        table === RT_TABLE_LOCAL && REFUSING.includes(type) && ips.some((ip) => prefixContains(dst, ip)),
    );
    const dropping = [...foreign.filter(({ type }) => type !== RTN_UNICAST), ...above];
    const leading = Map.groupBy(
      foreign.filter(({ type }) => type === RTN_UNICAST),
      ({ table }) => table,
    );
    const findings = [
      ...dropping.map((route) => dropped(route, nameOf)),
      ...[...leading].map(([table, routes]) => collision(table, routes, nameOf)),
    ];
    const known = new Set([
      ...NODE_TABLE_NAMES.values(),
      ...enis.flatMap(({ eniId, ifname, table }) => [eniId ?? '', `eni-${ifname ?? table}`]),
    ]);
    const taken = [...node.host.tableNames].filter(([table, name]) => tables.has(table) && !known.has(name));
    return done([...findings, ...taken.map(nameTaken)], [`ours: ${[...tables].join(', ')}`]);
  },
};

function dropped(route: RouteMessage, nameOf: (ifindex: number) => string): Finding {
  const line = renderRoute('delete', route, nameOf);
  const dst = route.dst ?? 'default';
  const owner = route.table === RT_TABLE_LOCAL ? 'local' : `${route.table} of ours`;
  const what = `table ${owner} has "${line.replace(/^ip (-6 )?route del /, '')}", which drops packets`;
  // It may have replaced a route of ours.
  const fix = [line, 'tke-eni repair'];
  return finding('blackhole-route', { what, fix, subjects: [tableId(route.table), routeId(route.table, dst)] });
}

function collision(table: number, routes: readonly RouteMessage[], nameOf: (ifindex: number) => string): Finding {
  const [first] = routes;
  const shown = `${first?.dst ?? 'default'} (protocol ${first?.protocol})`;
  const others = routes.length === 1 ? ', which is not ours' : ` and ${routes.length - 1} more, which are not ours`;
  return finding('table-collision', {
    what: `table ${table} of ours has ${shown}${others}`,
    fix: routes.slice(0, 5).map((route) => renderRoute('delete', route, nameOf)),
    subjects: [tableId(table), ...routes.map(({ dst }) => routeId(table, dst ?? 'default'))],
  });
}

function nameTaken([table, name]: readonly [number, string]): Finding {
  return finding('table-name-taken', {
    what: `/etc/iproute2/rt_tables calls table ${table}, which is ours, ${name}`,
    fix: [`sed -i '/^${table}[[:space:]]/d' /etc/iproute2/rt_tables`],
    subjects: [tableId(table)],
  });
}
