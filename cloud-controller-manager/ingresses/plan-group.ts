import type { Rule } from '../../cloud/rules.ts';
import type { DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import type { ObservedLoadBalancer } from '../balancers/observed-load-balancer.ts';
import type { OwnerPlan } from '../balancers/owner-plan.ts';
import { type RuleKey, ruleKeyOf } from '../balancers/target-place.ts';
import { type RuleClaim, resolveClashes } from './resolve-clashes.ts';

/** What a unit of Ingresses gets of its load balancer, together and each. */
type GroupPlan = {
  readonly listeners: readonly DesiredRuleListener[];
  /** By uid of the Ingress: the rules that it gets, or keeps others from. */
  readonly keysOf: ReadonlyMap<string, readonly RuleKey[]>;
  /** By uid of the Ingress. */
  readonly noticesOf: ReadonlyMap<string, readonly Notice[]>;
  /** Uids of those that ask for more than is planned: nothing of theirs is changed. */
  readonly refused: ReadonlySet<string>;
};

/** Puts the rules of Ingresses on the listeners of one load balancer, those of the older ones first. */
export function planGroup(claims: readonly RuleClaim[], maxRules: number): GroupPlan {
  const granted = resolveClashes(claims, maxRules);
  const byPort = new Map<number, DesiredRuleListener>();
  const refused = new Set(
    [...granted].flatMap(([uid, { notices }]) => (notices.some(({ blocks }) => blocks) ? [uid] : [])),
  );
  for (const { ingress, role } of claims)
    for (const granting of role === 'leaving' ? [] : (granted.get(ingress.uid)?.listeners ?? [])) {
      const isRefused = refused.has(ingress.uid);
      const one = isRefused || role === 'passive' ? passive(granting, isRefused) : granting;
      const known = byPort.get(one.port);
      byPort.set(one.port, known === undefined ? one : { ...one, ...known, rules: [...known.rules, ...one.rules] });
    }
  return {
    listeners: [...byPort.values()].toSorted((one, other) => one.port - other.port),
    keysOf: new Map([...granted].map(([uid, its]) => [uid, keysOf(its.listeners)])),
    noticesOf: new Map([...granted].map(([uid, { notices }]) => [uid, notices])),
    refused,
  };
}

/** @param areTargetsKept whether the targets stay as they are too */
function passive({ rules, ...listener }: DesiredRuleListener, areTargetsKept: boolean): DesiredRuleListener {
  const passiveRules = rules.map(
    ({ domain, url, targets, keptIps, keepsNodes, certificate }): DesiredRule => ({
      ...{ domain, url, settings: {}, keepsRedirect: true, isPassive: true },
      ...(certificate === undefined ? {} : { certificate: { kind: 'asIs' } }),
      ...(targets === undefined || areTargetsKept ? {} : { targets }),
      ...(keptIps === undefined || areTargetsKept ? {} : { keptIps }),
      ...(keepsNodes === undefined || areTargetsKept ? {} : { keepsNodes }),
    }),
  );
  return { ...listener, rules: passiveRules };
}

/** Returns the keys of rules. */
export function keysOf(listeners: readonly DesiredRuleListener[]): readonly RuleKey[] {
  return listeners.flatMap(({ protocol, port, rules }) => rules.map((rule) => ruleKeyOf(`${protocol}/${port}`, rule)));
}

/** Returns what an Ingress has to know whose rules are not known. */
export function noticeOfUnknown(loadBalancerId: string): Notice {
  const message = `what this Ingress asked of ${loadBalancerId} before is not known any more: rules that are there and that no other Ingress asks for stay as they are until it is corrected, or its mode is not skip`;
  return remark('IngressRefused', message);
}

/** Puts the plans of Ingresses together, but for what is desired of the load balancer. */
export function planOf(
  planned: readonly { readonly plan: Pick<OwnerPlan, 'unbound' | 'afterMs'> }[],
  ruleListeners: readonly DesiredRuleListener[],
): Omit<OwnerPlan, 'notices'> {
  const unbound = planned.flatMap(({ plan }) => plan.unbound ?? []);
  const waits = planned.flatMap(({ plan }) => plan.afterMs ?? []);
  return {
    ...{ listeners: [], ruleListeners },
    ...(unbound.length === 0
      ? {}
      : {
          unbound: {
            impossible: new Set(unbound.flatMap(({ impossible }) => [...impossible])),
            unselected: new Set(unbound.flatMap(({ unselected }) => [...unselected])),
          },
        }),
    ...(waits.length === 0 ? {} : { afterMs: Math.min(...waits) }),
  };
}

/**
 * Reports whether the listeners of a name have rules that are being deleted: those that are not asked for, and of `onlyLeaving`
 * where that is present.
 */
export function hasOtherRules(
  { listeners }: Pick<ObservedLoadBalancer, 'listeners'>,
  listenerName: string,
  desired: readonly DesiredRuleListener[],
  onlyLeaving?: readonly RuleKey[],
): boolean {
  return listeners
    .filter(({ name }) => name === listenerName)
    .some(({ protocol, port, rules = [] }) => {
      const wanted = desired.find((one) => one.protocol === protocol && one.port === port)?.rules ?? [];
      const goes = (rule: Pick<Rule, 'domain' | 'url'>): boolean =>
        protocol !== 'HTTP' && protocol !== 'HTTPS'
          ? false
          : (onlyLeaving?.includes(ruleKeyOf(`${protocol}/${port}`, rule)) ?? true);
      return rules.some(
        (rule) => goes(rule) && !wanted.some(({ domain, url }) => domain === rule.domain && url === rule.url),
      );
    });
}
