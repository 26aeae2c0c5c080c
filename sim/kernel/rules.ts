import type { RuleSpec } from '../../netlink/rule-message.ts';
import {
  FIB_RULE_IIF_DETACHED,
  FIB_RULE_INVERT,
  FIB_RULE_OIF_DETACHED,
  FR_ACT_TO_TBL,
} from '../../netlink/uapi/fib-rules.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN, RTPROT_KERNEL } from '../../netlink/uapi/rtnetlink.ts';
import { emit, type Family, linkNamed, type Netns, type Rule } from './netns.ts';
import { canonicalPrefix } from './prefix.ts';
import { Refusal } from './refusal.ts';
import { tableOf } from './routes.ts';

/** The rules of a new namespace: priority and table. */
const FIRST_RULES = {
  4: [
    [0, RT_TABLE_LOCAL],
    [32_766, RT_TABLE_MAIN],
    [32_767, RT_TABLE_DEFAULT],
  ],
  6: [
    [0, RT_TABLE_LOCAL],
    [32_766, RT_TABLE_MAIN],
  ],
} as const;

/** Makes the rules of a new namespace. */
export function makeRules(netns: Netns): void {
  for (const family of [4, 6] as const) {
    for (const [priority, table] of FIRST_RULES[family]) {
      if (family === 6) tableOf(netns, family, table);
      netns.rules[family].push({
        ...{ family: family === 4 ? AF_INET : AF_INET6, priority, table, protocol: RTPROT_KERNEL },
        ...{ tos: 0, action: FR_ACT_TO_TBL, flags: 0, unknown: [] },
      });
    }
  }
}

/**
 * Adds a rule behind those of its priority. @param request as the library completed it
 * @param isExclusive refuses what is there already @throws Refusal EEXIST
 */
export function addRule(netns: Netns, request: Partial<Rule> & RuleSpec, isExclusive: boolean, by: number): void {
  const family = request.family === AF_INET6 ? 6 : 4;
  const rule = wholeOf(request);
  const rules = netns.rules[family];
  if (isExclusive && rules.some((one) => isTwin(one, rule))) throw new Refusal('EEXIST');
  const at = rules.findIndex(({ priority }) => priority > rule.priority);
  rules.splice(at < 0 ? rules.length : at, 0, rule);
  if (rule.action === FR_ACT_TO_TBL) tableOf(netns, family, rule.table);
  emit(netns, { kind: 'rule', op: 'new', message: shown(netns, rule), portid: by });
}

/** Deletes the first rule that has what the request names. @throws Refusal ENOENT */
export function deleteRule(netns: Netns, request: Partial<Rule> & RuleSpec, by: number): void {
  const family = request.family === AF_INET6 ? 6 : 4;
  const wanted = wholeOf(request);
  // A mark without a mask is asked for with a whole one.
  const names = NAMES.filter(
    (name) => (name === 'fwmask' ? wanted : request)[name] !== undefined && !(name === 'table' && request.table === 0),
  );
  const rules = netns.rules[family];
  const at = rules.findIndex((one) => names.every((name) => equal(one[name], wanted[name])));
  const [rule] = at < 0 ? [] : rules.splice(at, 1);
  if (rule === undefined) throw new Refusal('ENOENT');
  emit(netns, { kind: 'rule', op: 'del', message: shown(netns, rule), portid: by });
}

/** Lists the rules of a family in the order in which they are asked. */
export function rulesOf(netns: Netns, family: Family): readonly Rule[] {
  return netns.rules[family].map((rule) => shown(netns, rule));
}

/** What tells one rule from another, and what a deletion may name. */
const NAMES = [
  ...([
    'priority',
    'table',
    'action',
    'tos',
    'src',
    'dst',
    'fwmark',
    'fwmask',
    'iifname',
    'oifname',
    'protocol',
  ] as const),
  ...(['suppressPrefixlength', 'suppressIfgroup', 'goto', 'ipProto', 'sportRange', 'dportRange', 'uidRange'] as const),
  ...(['l3mdev', 'tunId', 'flow'] as const),
] as const;

function wholeOf({ src, dst, ...request }: Partial<Rule> & RuleSpec): Rule {
  const { fwmark, fwmask } = request;
  return {
    ...request,
    ...{ family: request.family ?? AF_INET, tos: request.tos ?? 0, table: request.table ?? 0, unknown: [] },
    ...{ action: request.action ?? 0, flags: (request.flags ?? 0) & FIB_RULE_INVERT, protocol: request.protocol ?? 0 },
    ...(src !== undefined && !src.endsWith('/0') && { src: canonicalPrefix(src) }),
    ...(dst !== undefined && !dst.endsWith('/0') && { dst: canonicalPrefix(dst) }),
    ...(fwmark !== undefined && fwmark !== 0 && fwmask === undefined && { fwmask: 0xffff_ffff }),
  };
}

/** Reports whether a rule is refused because of one that is there: the kernel does not compare what it leaves open. */
function isTwin(there: Rule, asked: Rule): boolean {
  return NAMES.every((name) => name === 'goto' || (OPEN.has(name) && !asked[name]) || equal(there[name], asked[name]));
}

/** Names that mean everything when they are left out. */
const OPEN: ReadonlySet<string> = new Set(['src', 'dst', 'tos', 'flow']);

function equal(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

function shown(netns: Netns, rule: Rule): Rule {
  const { iifname, oifname } = rule;
  const detached =
    (iifname !== undefined && linkNamed(netns, iifname) === undefined ? FIB_RULE_IIF_DETACHED : 0) |
    (oifname !== undefined && linkNamed(netns, oifname) === undefined ? FIB_RULE_OIF_DETACHED : 0);
  return { ...rule, flags: rule.flags | detached };
}
