import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { placesOf, ruleKeyOf } from './target-place.ts';

/**
 * Leaves out what needs a listener or rule that neither is there nor is made by one of the steps: its creation was refused,
 * and is not tried now.
 */
export function withKnownPlaces(
  steps: readonly LoadBalancerStep[],
  observed: ObservedLoadBalancer | undefined,
  { listenerName, ruleListeners }: Pick<DesiredLoadBalancer, 'listenerName' | 'ruleListeners'>,
): readonly LoadBalancerStep[] {
  if (observed === undefined || ruleListeners === undefined) return steps;
  const ours = observed.listeners.filter(({ name }) => name === listenerName);
  const listeners = new Set(ours.map(({ protocol, port }) => `${protocol}/${port}`));
  const places = new Set<string>(placesOf(ours, listenerName).values());
  return steps.flatMap((step): readonly LoadBalancerStep[] => {
    switch (step.kind) {
      case 'createListeners':
        for (const { port } of step.spec.ports) listeners.add(`${step.spec.protocol}/${port}`);
        return [step];
      case 'createRules':
        if (!listeners.has(step.listener)) return [];
        for (const rule of step.rules) places.add(ruleKeyOf(step.listener, rule));
        return [step];
      case 'register': {
        const targets = step.targets.filter(({ place }) => places.has(place));
        return targets.length === 0 ? [] : [{ ...step, targets }];
      }
      case 'createRewrites': {
        const rewrites = step.rewrites.filter(({ source, target }) => places.has(source) && places.has(target));
        return rewrites.length === 0 ? [] : [{ ...step, rewrites }];
      }
      default:
        return [step];
    }
  });
}
