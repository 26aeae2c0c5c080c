import type { DesiredRuleListener } from '../balancers/desired-rules.ts';
import type { ObservedLoadBalancer } from '../balancers/observed-load-balancer.ts';

/** Tells whether the listeners of a name have rules that are not asked for: they are being deleted. */
export function hasOtherRules(
  { listeners }: Pick<ObservedLoadBalancer, 'listeners'>,
  listenerName: string,
  desired: readonly DesiredRuleListener[],
): boolean {
  return listeners
    .filter(({ name }) => name === listenerName)
    .some(({ protocol, port, rules = [] }) => {
      const wanted = desired.find((one) => one.protocol === protocol && one.port === port)?.rules ?? [];
      return rules.some((rule) => !wanted.some(({ domain, url }) => domain === rule.domain && url === rule.url));
    });
}
