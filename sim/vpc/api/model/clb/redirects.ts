import { withRule } from './layer7.ts';
import type { ModelLoadBalancer, ModelRule } from './types.ts';

/** The rules that are redirected to one of these. */
export function redirectsTo(balancer: ModelLoadBalancer, ruleIds: ReadonlySet<string>): readonly ModelRule[] {
  return allRules(balancer).filter(({ rewriteTo }) => rewriteTo !== undefined && ruleIds.has(rewriteTo.ruleId));
}

/** A load balancer without the redirects to these rules. */
export function withoutRedirects(balancer: ModelLoadBalancer, ruleIds: ReadonlySet<string>): ModelLoadBalancer {
  return [...balancer.listeners.values()].reduce(
    (outer, { listenerId, layer7 }) =>
      [...(layer7?.rules.values() ?? [])]
        .filter(({ rewriteTo }) => rewriteTo !== undefined && ruleIds.has(rewriteTo.ruleId))
        .reduce((now, { ruleId }) => withRule(now, listenerId, ruleId, withoutRewrite), outer),
    balancer,
  );
}

/** A rule without its redirect. */
export function withoutRewrite({ rewriteTo: _, ...rule }: ModelRule): ModelRule {
  return rule;
}

/** All rules of a load balancer. */
export function allRules(balancer: ModelLoadBalancer): readonly ModelRule[] {
  return [...balancer.listeners.values()].flatMap(({ layer7 }) => [...(layer7?.rules.values() ?? [])]);
}
