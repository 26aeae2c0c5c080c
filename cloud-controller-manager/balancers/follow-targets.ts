import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { OwnerPlan } from './owner-plan.ts';

/** Returns what is desired of a load balancer while what its owner asks for is refused: its listeners stay, and their targets follow. */
export function followTargets(
  listenerName: string,
  loadBalancerId: string,
  { listeners = [], ruleListeners }: Pick<OwnerPlan, 'listeners' | 'ruleListeners'>,
): DesiredLoadBalancer {
  return {
    source: { kind: 'existing', loadBalancerId },
    listenerName,
    listeners: listeners.map((listener) => ({ ...listener, settings: {} })),
    ...(ruleListeners === undefined ? {} : { ruleListeners }),
    allowsAddressChange: false,
    followsOnly: true,
    keepsNames: true,
  };
}
