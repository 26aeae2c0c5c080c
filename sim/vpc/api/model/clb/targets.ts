import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { Params } from '../params.ts';
import { Backends } from './backends.ts';
import { listenerOf } from './listeners.ts';
import { requireQuota } from './quotas.ts';
import { findTarget, readNewTarget, readWeight, TARGET_FIELDS, targetKey } from './read-target.ts';
import { placeId, placeOf, type TargetPlace, withPlace } from './target-place.ts';
import { changeLater } from './tasks.ts';
import type { ModelLoadBalancer, ModelTarget } from './types.ts';

/** Most targets in a request about one listener. */
const MOST_TARGETS = 20;
const MOST_RULES = 100;
const MOST_RULE_TARGETS = 50;
const MOST_BATCH_TARGETS = 500;

/** Answers RegisterTargets. */
export function registerTargets(call: ModelCall): object {
  const { state, params } = call;
  const { balancer, place } = subjectOf(call);
  const backends = new Backends(state, balancer);
  const added = readTargets(params).map((target) => readNewTarget(target, backends, state.nowMs));
  requireNew(place, added, state.clb.limits.targets);
  changeLater(call, balancer, (before) => withTargets(before, place, added));
  return {};
}

/** Answers DeregisterTargets. */
export function deregisterTargets(call: ModelCall): object {
  const { balancer, place } = subjectOf(call);
  const doomed = readTargets(call.params).map((target) => findTarget(target, place));
  changeLater(call, balancer, (before) => withoutTargets(before, place, doomed));
  return {};
}

/** Answers ModifyTargetWeight: the weight of a target goes before that of the request. */
export function modifyWeight(call: ModelCall): object {
  const { params } = call;
  const { balancer, place } = subjectOf(call);
  const changed = reweigh(place, readTargets(params), readWeight(params));
  changeLater(call, balancer, (before) => withTargets(before, place, changed));
  return {};
}

/** Answers BatchModifyTargetWeight. */
export function batchModifyWeight(call: ModelCall): object {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const rules = params.parts('ModifyList', MOST_RULES, ['ListenerId', 'Targets'], ['LocationId', 'Weight']);
  if (rules.length === 0) throw new ApiError('InvalidParameterValue.Length', 'ModifyList is empty.');
  const changes = rules.map((rule) => {
    const place = placeOf(listenerOf(balancer, rule.text('ListenerId')), rule.text('LocationId'));
    const targets = rule.parts('Targets', MOST_RULE_TARGETS, ['Port'], TARGET_FIELDS);
    return { place, targets: reweigh(place, targets, readWeight(rule)) };
  });
  const count = changes.reduce((sum, { targets }) => sum + targets.length, 0);
  if (count > MOST_BATCH_TARGETS) {
    throw new ApiError('InvalidParameterValue.Length', `ModifyList holds more than ${MOST_BATCH_TARGETS} targets.`);
  }
  changeLater(call, balancer, (before) =>
    changes.reduce((now, { place, targets }) => withTargets(now, place, targets), before),
  );
  return {};
}

/** A load balancer with some targets of a place entered, or replaced. */
export function withTargets(
  balancer: ModelLoadBalancer,
  place: TargetPlace,
  targets: readonly ModelTarget[],
): ModelLoadBalancer {
  const entered = targets.map((target) => [targetKey(target), target] as const);
  return withPlace(balancer, place, (before) => new Map([...before, ...entered]));
}

/** A load balancer with some targets of a place struck out. */
export function withoutTargets(
  balancer: ModelLoadBalancer,
  place: TargetPlace,
  targets: readonly ModelTarget[],
): ModelLoadBalancer {
  const doomed = new Set(targets.map(targetKey));
  return withPlace(balancer, place, (before) => new Map([...before].filter(([key]) => !doomed.has(key))));
}

/** @throws ApiError when a target is bound already, comes twice, or is one too many */
export function requireNew(place: TargetPlace, added: readonly ModelTarget[], limit: number): void {
  const bound = new Set(place.targets.keys());
  for (const target of added) {
    const key = targetKey(target);
    if (bound.has(key)) {
      throw new ApiError('InvalidParameterValue.Duplicate', `${key} is bound to ${placeId(place)} already.`);
    }
    bound.add(key);
  }
  requireQuota(bound.size, limit, `targets of ${placeId(place)}`);
}

function subjectOf({ state, params }: ModelCall): {
  readonly balancer: ModelLoadBalancer;
  readonly place: TargetPlace;
} {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const listener = listenerOf(balancer, params.text('ListenerId'));
  return { balancer, place: placeOf(listener, params.text('LocationId')) };
}

function readTargets(params: Params): readonly Params[] {
  const targets = params.parts('Targets', MOST_TARGETS, ['Port'], TARGET_FIELDS);
  if (targets.length === 0) throw new ApiError('InvalidParameterValue.Length', 'Targets is empty.');
  return targets;
}

function reweigh(place: TargetPlace, targets: readonly Params[], fallback: number | undefined): readonly ModelTarget[] {
  return targets.map((params) => {
    const weight = readWeight(params) ?? fallback;
    if (weight === undefined) throw new ApiError('MissingParameter', 'The parameter Weight is missing.');
    return { ...findTarget(params, place), weight };
  });
}
