import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { Params } from '../params.ts';
import { Backends } from './backends.ts';
import { listenerOf, withListener } from './listeners.ts';
import { requireQuota } from './quotas.ts';
import { findTarget, readNewTarget, readWeight, TARGET_FIELDS, targetKey } from './read-target.ts';
import { changeLater } from './tasks.ts';
import type { ModelListener, ModelLoadBalancer, ModelTarget } from './types.ts';

/** Most targets in a request about one listener. */
const MOST_TARGETS = 20;
const MOST_RULES = 100;
const MOST_RULE_TARGETS = 50;
const MOST_BATCH_TARGETS = 500;

/** Answers RegisterTargets. */
export function registerTargets(call: ModelCall): object {
  const { state, params } = call;
  const { balancer, listener } = subjectOf(call);
  const backends = new Backends(state, balancer);
  const added = readTargets(params).map((target) => readNewTarget(target, backends, state.nowMs));
  requireNew(listener, added, state.clb.limits.targets);
  changeLater(call, balancer, (before) => withTargets(before, listener.listenerId, added));
  return {};
}

/** Answers DeregisterTargets. */
export function deregisterTargets(call: ModelCall): object {
  const { balancer, listener } = subjectOf(call);
  const doomed = readTargets(call.params).map((target) => findTarget(target, listener));
  changeLater(call, balancer, (before) => withoutTargets(before, listener.listenerId, doomed));
  return {};
}

/** Answers ModifyTargetWeight: the weight of a target goes before that of the request. */
export function modifyWeight(call: ModelCall): object {
  const { params } = call;
  const { balancer, listener } = subjectOf(call);
  const changed = reweigh(listener, readTargets(params), readWeight(params));
  changeLater(call, balancer, (before) => withTargets(before, listener.listenerId, changed));
  return {};
}

/** Answers BatchModifyTargetWeight. */
export function batchModifyWeight(call: ModelCall): object {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const rules = params.parts('ModifyList', MOST_RULES, ['ListenerId', 'Targets'], ['LocationId', 'Weight']);
  if (rules.length === 0) throw new ApiError('InvalidParameterValue.Length', 'ModifyList is empty.');
  const changes = rules.map((rule) => {
    const listener = listenerOf(balancer, rule.text('ListenerId'));
    requireLayer4(listener);
    const targets = rule.parts('Targets', MOST_RULE_TARGETS, ['Port'], TARGET_FIELDS);
    return { listenerId: listener.listenerId, targets: reweigh(listener, targets, readWeight(rule)) };
  });
  const count = changes.reduce((sum, { targets }) => sum + targets.length, 0);
  if (count > MOST_BATCH_TARGETS) {
    throw new ApiError('InvalidParameterValue.Length', `ModifyList holds more than ${MOST_BATCH_TARGETS} targets.`);
  }
  changeLater(call, balancer, (before) =>
    changes.reduce((now, { listenerId, targets }) => withTargets(now, listenerId, targets), before),
  );
  return {};
}

/** A load balancer with some targets of a listener entered, or replaced. */
export function withTargets(
  balancer: ModelLoadBalancer,
  listenerId: string,
  targets: readonly ModelTarget[],
): ModelLoadBalancer {
  const listener = balancer.listeners.get(listenerId);
  if (listener === undefined) return balancer;
  const after = new Map([...listener.targets, ...targets.map((target) => [targetKey(target), target] as const)]);
  return withListener(balancer, { ...listener, targets: after });
}

/** A load balancer with some targets of a listener struck out. */
export function withoutTargets(
  balancer: ModelLoadBalancer,
  listenerId: string,
  targets: readonly ModelTarget[],
): ModelLoadBalancer {
  const listener = balancer.listeners.get(listenerId);
  if (listener === undefined) return balancer;
  const doomed = new Set(targets.map(targetKey));
  const after = new Map([...listener.targets].filter(([key]) => !doomed.has(key)));
  return withListener(balancer, { ...listener, targets: after });
}

/** @throws ApiError when a target is bound already, comes twice, or is one too many */
export function requireNew(listener: ModelListener, added: readonly ModelTarget[], limit: number): void {
  const bound = new Set(listener.targets.keys());
  for (const target of added) {
    const key = targetKey(target);
    if (bound.has(key)) {
      throw new ApiError('InvalidParameterValue.Duplicate', `${key} is bound to ${listener.listenerId} already.`);
    }
    bound.add(key);
  }
  requireQuota(bound.size, limit, `targets of ${listener.listenerId}`);
}

/** Targets of a listener of layer 7 belong to a rule; the model has none. @throws ApiError */
export function requireLayer4({ listenerId, protocol }: ModelListener): void {
  if (protocol !== 'HTTP' && protocol !== 'HTTPS') return;
  throw new ApiError('InvalidParameter.LocationNotFound', `The rule of ${listenerId} (${protocol}) does not exist.`);
}

function subjectOf({ state, params }: ModelCall): {
  readonly balancer: ModelLoadBalancer;
  readonly listener: ModelListener;
} {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const listener = listenerOf(balancer, params.text('ListenerId'));
  requireLayer4(listener);
  return { balancer, listener };
}

function readTargets(params: Params): readonly Params[] {
  const targets = params.parts('Targets', MOST_TARGETS, ['Port'], TARGET_FIELDS);
  if (targets.length === 0) throw new ApiError('InvalidParameterValue.Length', 'Targets is empty.');
  return targets;
}

function reweigh(
  listener: ModelListener,
  targets: readonly Params[],
  fallback: number | undefined,
): readonly ModelTarget[] {
  return targets.map((params) => {
    const weight = readWeight(params) ?? fallback;
    if (weight === undefined) throw new ApiError('MissingParameter', 'The parameter Weight is missing.');
    return { ...findTarget(params, listener), weight };
  });
}
