import { ApiError } from '../api-error.ts';
import { ruleOf, withRule } from './layer7.ts';
import type { ModelListener, ModelLoadBalancer, ModelTarget } from './types.ts';

/** What targets belong to: a listener of layer 4, or a rule. */
export type TargetPlace = {
  readonly listenerId: string;
  /** Undefined: the listener itself. */
  readonly ruleId?: string;
  readonly targets: ReadonlyMap<string, ModelTarget>;
};

/** The place that a request means; '' : no rule is named. @throws ApiError InvalidParameter.LocationNotFound */
export function placeOf(listener: ModelListener, ruleId: string): TargetPlace {
  const { listenerId, protocol, targets } = listener;
  if (ruleId !== '') return { listenerId, ruleId, targets: ruleOf(listener, ruleId).targets };
  if (listener.layer7 === undefined) return { listenerId, targets };
  throw new ApiError(
    'InvalidParameter.LocationNotFound',
    `A target of ${listenerId} (${protocol}) needs a LocationId.`,
  );
}

/** What a place is called: by the id of its rule, or of its listener. */
export function placeId({ listenerId, ruleId }: Pick<TargetPlace, 'listenerId' | 'ruleId'>): string {
  return ruleId ?? listenerId;
}

/** A load balancer with the targets of a place changed; as it was when the place is gone meanwhile. */
export function withPlace(
  balancer: ModelLoadBalancer,
  { listenerId, ruleId }: Pick<TargetPlace, 'listenerId' | 'ruleId'>,
  change: (targets: ReadonlyMap<string, ModelTarget>) => ReadonlyMap<string, ModelTarget>,
): ModelLoadBalancer {
  if (ruleId !== undefined) {
    return withRule(balancer, listenerId, ruleId, (rule) => ({ ...rule, targets: change(rule.targets) }));
  }
  const listener = balancer.listeners.get(listenerId);
  if (listener === undefined) return balancer;
  const listeners = new Map(balancer.listeners).set(listenerId, { ...listener, targets: change(listener.targets) });
  return { ...balancer, listeners };
}

/** All places of a listener. */
export function placesOf({ listenerId, targets, layer7 }: ModelListener): readonly TargetPlace[] {
  if (layer7 === undefined) return [{ listenerId, targets }];
  return [...layer7.rules.values()].map((rule) => ({ listenerId, ruleId: rule.ruleId, targets: rule.targets }));
}
