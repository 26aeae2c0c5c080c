import type { BatchRegisterTargetsResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { Params } from '../params.ts';
import { Backends } from './backends.ts';
import { listenerOf } from './listeners.ts';
import { findTarget, readNewTarget, TARGET_FIELDS } from './read-target.ts';
import { placeOf, type TargetPlace } from './target-place.ts';
import { requireNew, withoutTargets, withTargets } from './targets.ts';
import type { ModelLoadBalancer } from './types.ts';

const MOST_TARGETS = 500;

/** What the targets of one listener make of the load balancer; throws an ApiError when one of them is refused. */
type Change = (now: ModelLoadBalancer, place: TargetPlace, targets: readonly Params[]) => ModelLoadBalancer;

/** Answers BatchRegisterTargets, at once: all targets of a listener, or none of them. */
export function batchRegister(call: ModelCall): Partial<BatchRegisterTargetsResponse> {
  const { state } = call;
  return changeEach(call, (now, place, targets) => {
    const backends = new Backends(state, now);
    const added = targets.map((target) => readNewTarget(target, backends, state.nowMs));
    requireNew(place, added, state.clb.limits.targets);
    return withTargets(now, place, added);
  });
}

/** Answers BatchDeregisterTargets, at once: all targets of a listener, or none of them. */
export function batchDeregister(call: ModelCall): Partial<BatchRegisterTargetsResponse> {
  return changeEach(call, (now, place, targets) => {
    const doomed = targets.map((target) => findTarget(target, place));
    return withoutTargets(now, place, doomed);
  });
}

/** Does it for one listener after the other, and tells those that it was refused for: no error, a field of the answer. */
function changeEach({ state, params, refusesOne }: ModelCall, change: Change): Partial<BatchRegisterTargetsResponse> {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const groups = groupByListener(params, balancer);
  const refusals = new Map<string, string>();
  let now = balancer;
  for (const [listenerId, targets] of groups) {
    try {
      // What a fault script refuses: the last of them.
      if (refusesOne && listenerId === [...groups.keys()].at(-1)) throw new ApiError('FailedOperation', 'injected');
      const places = Map.groupBy(targets, (target) => target.text('LocationId'));
      // All rules of the listener, or none.
      now = [...places].reduce(
        (before, [ruleId, ofPlace]) => change(before, placeOf(listenerOf(before, listenerId), ruleId), ofPlace),
        now,
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusals.set(listenerId, `${error.code}: ${error.message}`);
    }
  }
  if (now !== balancer) state.clb.put(now, state.nowMs);
  return { FailListenerIdSet: [...refusals.keys()], Message: [...new Set(refusals.values())].join('; ') };
}

function groupByListener(params: Params, balancer: ModelLoadBalancer): ReadonlyMap<string, readonly Params[]> {
  const fields = [...TARGET_FIELDS.filter((name) => name !== 'Type'), 'LocationId'];
  const targets = params.parts('Targets', MOST_TARGETS, ['ListenerId', 'Port'], fields);
  if (targets.length === 0) throw new ApiError('InvalidParameterValue.Length', 'Targets is empty.');
  const groups = Map.groupBy(targets, (target) => target.text('ListenerId'));
  const unknown = [...groups.keys()].filter((listenerId) => !balancer.listeners.has(listenerId));
  if (unknown.length > 0) {
    throw new ApiError('InvalidParameter', `some ListenerId ${JSON.stringify(unknown)} not found`);
  }
  for (const [listenerId, ofListener] of groups) {
    for (const target of ofListener) placeOf(listenerOf(balancer, listenerId), target.text('LocationId'));
  }
  return groups;
}
