import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import {
  FR_ACT_BLACKHOLE,
  FR_ACT_GOTO,
  FR_ACT_PROHIBIT,
  FR_ACT_TO_TBL,
  FR_ACT_UNREACHABLE,
} from '../../netlink/uapi/fib-rules.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { bitsOf } from './find-prefix.ts';
import { findInTable, type NextHop, type RefusalCode, type TableAnswer } from './find-route-match.ts';
import { isRuleMatch } from './find-rule-match.ts';
import { addressFamily, type Flow } from './flow.ts';

/** What routing is read from. */
export type Fib = Pick<NetnsFacts, 'rules' | 'routes' | 'links'>;

/** A rule that applied to the packet and decided nothing. */
export type PassedRule = {
  readonly rule: RuleMessage;
  readonly why: 'empty' | 'throw' | 'suppressed' | 'goto' | 'nop';
  /** The route that threw or was suppressed. */
  readonly route?: RouteMessage;
};

/** Our reading of what the kernel would do with a packet; the kernel itself is asked beside it, and believed. */
export type Reading = { readonly passed: readonly PassedRule[] } & (
  | {
      readonly kind: 'route';
      readonly rule: RuleMessage;
      readonly route: RouteMessage;
      readonly nexthops: readonly NextHop[];
    }
  /** By a rule alone, by a route that refuses, or because no rule led anywhere. */
  | {
      readonly kind: 'refused';
      readonly code: RefusalCode;
      readonly rule?: RuleMessage;
      readonly route?: RouteMessage;
    }
);

const RULE_REFUSALS: Readonly<Record<number, RefusalCode>> = {
  [FR_ACT_BLACKHOLE]: 'EINVAL',
  [FR_ACT_UNREACHABLE]: 'ENETUNREACH',
  [FR_ACT_PROHIBIT]: 'EACCES',
};

/**
 * Reads rules and tables as the kernel does: rules in their order, the first whose table has an answer decides.
 * @see net/core/fib_rules.c fib_rules_lookup
 */
export function findRoute(fib: Fib, flow: Flow): Reading {
  const family = addressFamily(flow.family);
  const rules = rulesOf(fib.rules, family);
  const passed: PassedRule[] = [];
  for (let at = 0; at < rules.length; at++) {
    const rule = rules[at];
    if (rule === undefined || !isRuleMatch(rule, flow, fib.links)) continue;
    if (rule.action === FR_ACT_GOTO) {
      passed.push({ rule, why: 'goto' });
      const target = rules.findIndex(({ priority }) => priority === rule.goto);
      // Only forwards: the kernel refuses others. A target that is not there is passed over.
      if (target > at) at = target - 1;
      continue;
    }
    const code = RULE_REFUSALS[rule.action];
    if (code !== undefined) return { kind: 'refused', code, rule, passed };
    if (rule.action !== FR_ACT_TO_TBL) {
      passed.push({ rule, why: 'nop' });
      continue;
    }
    const answer = findInTable(fib, rule.table, flow);
    const pass = passOf(fib, rule, answer);
    if (pass !== undefined) passed.push(pass);
    else if (answer.kind !== 'nothing') return { ...answer, rule, passed };
  }
  return { kind: 'refused', code: 'ENETUNREACH', passed };
}

/** Sorted once for each reading of a namespace: many packets are asked about. */
const sorted = new WeakMap<readonly RuleMessage[], ReadonlyMap<number, readonly RuleMessage[]>>();

function rulesOf(rules: readonly RuleMessage[], family: number): readonly RuleMessage[] {
  // The kernel tells them in their order; a stable sort keeps it within one priority.
  const groups =
    sorted.get(rules) ??
    Map.groupBy(
      [...rules].sort((a, b) => a.priority - b.priority),
      (rule) => rule.family,
    );
  sorted.set(rules, groups);
  return groups.get(family) ?? [];
}

function passOf(fib: Fib, rule: RuleMessage, answer: TableAnswer): PassedRule | undefined {
  if (answer.kind === 'nothing') {
    return answer.route === undefined ? { rule, why: 'empty' } : { rule, why: 'throw', route: answer.route };
  }
  // A refusal cannot be suppressed.
  if (answer.kind === 'route' && isSuppressed(fib, rule, answer))
    return { rule, why: 'suppressed', route: answer.route };
  return undefined;
}

function isSuppressed(fib: Fib, rule: RuleMessage, { route, nexthops }: TableAnswer & { kind: 'route' }): boolean {
  if (rule.suppressPrefixlength !== undefined && bitsOf(route.dst) <= rule.suppressPrefixlength) return true;
  if (rule.suppressIfgroup === undefined) return false;
  // IPv4 looks at the first next hop; IPv6 has chosen one by a hash by then, so what is said of it holds where all are alike.
  const judged = route.family === AF_INET6 ? nexthops : nexthops.slice(0, 1);
  return judged.every(({ oif }) => fib.links.find(({ ifindex }) => ifindex === oif)?.group === rule.suppressIfgroup);
}
