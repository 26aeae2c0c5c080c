import type {
  DescribeTargetHealthResponse,
  ListenerHealth,
  TargetHealth,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type { ModelCall } from '../call.ts';
import type { CloudState } from '../state.ts';
import type { ModelListener, ModelTarget } from './types.ts';

const MOST_BALANCERS = 30;
const MOST_LISTENERS = 100;

/** Answers DescribeTargetHealth: all at once, without pages. */
export function describeTargetHealth({ state, params, asOfMs }: ModelCall): Partial<DescribeTargetHealthResponse> {
  const balancers = params
    .texts('LoadBalancerIds', MOST_BALANCERS)
    .map((loadBalancerId) => state.clb.balancer(loadBalancerId, asOfMs));
  const ids = params.texts('ListenerIds', MOST_LISTENERS);
  return {
    LoadBalancers: balancers.map((balancer) => ({
      LoadBalancerId: balancer.loadBalancerId,
      LoadBalancerName: balancer.name,
      Listeners: [...balancer.listeners.values()]
        .filter(({ listenerId }) => ids.length === 0 || ids.includes(listenerId))
        .map((listener) => wireListener(state, listener)),
    })),
  };
}

function wireListener(state: CloudState, listener: ModelListener): ListenerHealth {
  const Targets = [...listener.targets.values()].map((target) => wireHealth(state, listener, target));
  return {
    ListenerId: listener.listenerId,
    ListenerName: listener.name,
    Protocol: listener.protocol,
    Port: listener.port,
    // What has no rules is answered as if it had one.
    Rules: listener.healthCheck === undefined ? [] : [{ LocationId: '', Domain: '', Url: '', Targets }],
  };
}

function wireHealth(state: CloudState, listener: ModelListener, target: ModelTarget): TargetHealth {
  const { healthCheck, listenerId } = listener;
  const detail =
    healthCheck === undefined ? 'Close' : state.clb.health.detailOf(listenerId, healthCheck, target, state.nowMs);
  return {
    IP: target.ip,
    Port: target.port,
    HealthStatus: detail === 'Alive' || detail === 'Close',
    TargetId: target.instanceId ?? '',
    HealthStatusDetail: detail,
    HealthStatusDetial: detail,
    Weight: target.weight,
  };
}
