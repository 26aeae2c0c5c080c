import { addressFamily } from '../../dataplane/address-family.ts';
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
import { prefixBits } from '../node/prefix-contains.ts';
import { findInTable, hopsOf, type NextHop, type RefusalCode, type TableAnswer } from './find-in-table.ts';
import type { Flow } from './flow.ts';
import { isRuleMatch } from './match-rule.ts';

/** What a route is looked up in. */
type Fib = Pick<NetnsFacts, 'rules' | 'routes' | 'links'>;

/** A rule that matched the packet and did not decide. */
export type PassedRule = {
  readonly rule: RuleMessage;
  readonly why: 'empty' | 'throw' | 'suppressed' | 'goto' | 'nop';
  /** The route that threw or was suppressed. */
  readonly route?: RouteMessage;
};

/** Simulated result of the kernel's route lookup. The kernel is asked as well; its own answer counts. */
export type RouteResult = { readonly passed: readonly PassedRule[] } & (
  | {
      readonly kind: 'route';
      readonly rule: RuleMessage;
      readonly route: RouteMessage;
      readonly nexthops: readonly NextHop[];
    }
  /** Refused by a rule, by a route, or because no rule led to a route. */
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
 * Looks up a route as the kernel does: rules in their order; the first rule whose table has an answer decides.
 * @see net/core/fib_rules.c fib_rules_lookup
 */
export function findRoute(fib: Fib, flow: Flow): RouteResult {
  const family = addressFamily(flow.family);
  const rules = rulesOf(fib.rules, family);
  const passed: PassedRule[] = [];
  for (let at = 0; at < rules.length; at++) {
    const rule = rules[at];
    if (rule === undefined || !isRuleMatch(rule, flow, fib.links)) continue;
    if (rule.action === FR_ACT_GOTO) {
      passed.push({ rule, why: 'goto' });
      const target = rules.findIndex(({ priority }) => priority === rule.goto);
      // The kernel accepts only jumps forward. A jump to a missing rule is skipped.
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

/** Rules by family, sorted once for each dump of a namespace: many packets are looked up. */
const sorted = new WeakMap<readonly RuleMessage[], ReadonlyMap<number, readonly RuleMessage[]>>();

function rulesOf(rules: readonly RuleMessage[], family: number): readonly RuleMessage[] {
  // The kernel dumps rules in their order; a stable sort keeps it within one priority.
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
  if (rule.suppressPrefixlength !== undefined && prefixBits(route.dst) <= rule.suppressPrefixlength) return true;
  if (rule.suppressIfgroup === undefined) return false;
  // The kernel checks the first next hop of an IPv4 route, dead or not. For IPv6 it has selected one by a hash before, so the
  // result is certain only where all next hops are alike. @see net/ipv4/fib_rules.c fib4_rule_suppress
  const checked = route.family === AF_INET6 ? nexthops : hopsOf(route).slice(0, 1);
  return checked.every(({ oif }) => fib.links.find(({ ifindex }) => ifindex === oif)?.group === rule.suppressIfgroup);
}
