import type { Rule } from '../../cloud/rules.ts';
import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { ObservedLoadBalancer } from '../balancers/observed-load-balancer.ts';
import { type RuleKey, ruleKeyOf } from '../balancers/target-place.ts';

/**
 * Tells whether the listeners of a name have rules that are being deleted: those that are not asked for, and of `onlyLeaving`
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
