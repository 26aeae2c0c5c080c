import { isHostPrefix } from '../../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import { ruleElement, ruleSelector } from '../../../inspection/node/rule-selector.ts';
import { renderRule } from '../../../netlink/render-rule.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { FR_ACT_TO_TBL } from '../../../netlink/uapi/fib-rules.ts';
import { AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { RTPROT_KERNEL } from '../../../netlink/uapi/rtnetlink.ts';
import { type GraphNode, NODE_GROUP } from './graph.ts';

/** From this number of rules on that differ only in a Pod's address, one box stands for all of them. */
const MERGED_RULES = 3;

/**
 * Builds the boxes of the rules, by ascending priority. `groupOf` returns the group of a rule, by its table and its
 * Pod.
 */
export function buildRuleBoxes(
  rules: readonly RuleMessage[],
  tableNames: ReadonlyMap<number, string>,
  groupOf: (rule: RuleMessage) => string | undefined,
): readonly GraphNode[] {
  const sorted = [...rules].sort((a, b) => a.priority - b.priority || a.family - b.family);
  // One box stands for the same rule of both families, and for the many rules of a group that differ in a Pod's address
  // only.
  const alike = Map.groupBy(sorted, (rule) => `${groupOf(rule) ?? NODE_GROUP} ${similarity(rule)}`);
  return [...alike.values()].flatMap((set) => {
    const group = (set[0] === undefined ? undefined : groupOf(set[0])) ?? NODE_GROUP;
    if (set.length >= MERGED_RULES && set.some(hasHostSelector)) return [mergedBox(set, group, tableNames)];
    const same = Map.groupBy(set, (rule) => ruleSelector(rule));
    return [...same.values()].map((twins) => box(twins, group, tableNames));
  });
}

function box(twins: readonly RuleMessage[], group: string, tableNames: ReadonlyMap<number, string>): GraphNode {
  const [rule] = twins;
  if (rule === undefined) throw new Error('a group of rules is never empty');
  const action = actionOf(rule, tableNames);
  return {
    id: ruleElement(rule),
    kind: 'rule',
    lane: 'rules',
    group,
    title: `${rule.priority}: ${shortSelector(ruleSelector(rule))}`,
    lines: [`${action} · ${familiesOf(twins)}`],
    owner: ownerOf(rule),
    state: 'ok',
    elements: [...new Set(twins.map((twin) => ruleElement(twin)))],
    facts: [{ title: twins.length > 1 ? 'Rules' : 'Rule', rows: twins.map((twin) => ruleLine(twin)) }],
    findings: [],
  };
}

function mergedBox(set: readonly RuleMessage[], group: string, tableNames: ReadonlyMap<number, string>): GraphNode {
  const [rule] = set;
  if (rule === undefined) throw new Error('a group of rules is never empty');
  const what = rule.src === undefined ? 'to' : 'from';
  return {
    id: `rules:${rule.priority}:${what}~${group}`,
    kind: 'rule',
    lane: 'rules',
    group,
    title: `${rule.priority}: ${what} each Pod`,
    lines: [`${actionOf(rule, tableNames)} · ${set.length} rules`],
    owner: ownerOf(rule),
    state: 'ok',
    elements: [...new Set(set.map((one) => ruleElement(one)))],
    facts: [{ title: `${set.length} rules`, rows: set.map((one) => ruleLine(one)) }],
    findings: [],
  };
}

function similarity(rule: RuleMessage): string {
  const isForPod = rule.protocol === RTPROT_TKE_ENI && hasHostSelector(rule);
  const selector = isForPod ? (rule.src === undefined ? 'to' : 'from') : ruleSelector(rule);
  return [rule.priority, rule.table, rule.action, rule.protocol ?? '', selector].join(' ');
}

function hasHostSelector({ src, dst }: RuleMessage): boolean {
  return isHostPrefix(src) || isHostPrefix(dst);
}

/** Shortens the selector of a rule to its distinctive part: 'fwmark 0x10000/0xff0000'. */
export function shortSelector(selector: string): string {
  return selector === 'from all' ? 'all packets' : selector.replace(/^from all /, '');
}

function actionOf(rule: RuleMessage, tableNames: ReadonlyMap<number, string>): string {
  if (rule.action === FR_ACT_TO_TBL) return `lookup ${tableNames.get(rule.table) ?? rule.table}`;
  return ruleLine(rule).split(' ').at(-1) ?? '';
}

function familiesOf(rules: readonly RuleMessage[]): string {
  const families = new Set(rules.map(({ family }) => (family === AF_INET6 ? 'IPv6' : 'IPv4')));
  return [...families].sort().join(', ');
}

function ownerOf(rule: RuleMessage): GraphNode['owner'] {
  if (rule.protocol === RTPROT_TKE_ENI) return 'ours';
  return rule.protocol === RTPROT_KERNEL ? 'kernel' : 'foreign';
}

/** Formats a rule as a line for people, without the command. */
function ruleLine(rule: RuleMessage): string {
  return renderRule('add', rule).replace(/^ip (-6 )?rule add /, (_, six) => (six === undefined ? '' : 'inet6 '));
}
