import type {
  DescribeTargetHealthResponse,
  ListenerHealth,
  TargetHealth,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type { ModelCall } from '../call.ts';
import type { CloudState } from '../state.ts';
import type { ModelHealthCheck, ModelListener, ModelTarget } from './types.ts';

const MOST_BALANCERS = 30;
const MOST_LISTENERS = 100;

/** Answers DescribeTargetHealth: all at once, without pages. */
export function describeTargetHealth({ state, params, asOfMs }: ModelCall): Partial<DescribeTargetHealthResponse> {
  const balancers = params
    .texts('LoadBalancerIds', MOST_BALANCERS)
    .map((loadBalancerId) => state.clb.balancer(loadBalancerId, asOfMs));
  const ids = params.texts('ListenerIds', MOST_LISTENERS);
  const ruleIds = params.texts('LocationIds', MOST_LISTENERS);
  return {
    LoadBalancers: balancers.map((balancer) => ({
      LoadBalancerId: balancer.loadBalancerId,
      LoadBalancerName: balancer.name,
      Listeners: [...balancer.listeners.values()]
        .filter(({ listenerId }) => ids.length === 0 || ids.includes(listenerId))
        .map((listener) => wireListener(state, listener, ruleIds)),
    })),
  };
}

function wireListener(state: CloudState, listener: ModelListener, ruleIds: readonly string[]): ListenerHealth {
  return {
    ListenerId: listener.listenerId,
    ListenerName: listener.name,
    Protocol: listener.protocol,
    Port: listener.port,
    // What has no rules is answered as if it had one.
    Rules: healthOf(state, listener).filter(({ LocationId }) => ruleIds.length === 0 || ruleIds.includes(LocationId)),
  };
}

function healthOf(state: CloudState, listener: ModelListener) {
  const { listenerId, healthCheck, targets, layer7 } = listener;
  const wire = (id: string, check: ModelHealthCheck | undefined, of: ReadonlyMap<string, ModelTarget>) =>
    [...of.values()].map((target) => wireHealth(state, id, check, target));
  if (layer7 !== undefined) {
    return [...layer7.rules.values()].map((rule) => ({
      LocationId: rule.ruleId,
      Domain: rule.domain,
      Url: rule.url,
      Targets: wire(rule.ruleId, rule.healthCheck, rule.targets),
    }));
  }
  if (healthCheck === undefined) return [];
  return [{ LocationId: '', Domain: '', Url: '', Targets: wire(listenerId, healthCheck, targets) }];
}

function wireHealth(
  state: CloudState,
  id: string,
  healthCheck: ModelHealthCheck | undefined,
  target: ModelTarget,
): TargetHealth {
  const detail = healthCheck === undefined ? 'Close' : state.clb.health.detailOf(id, healthCheck, target, state.nowMs);
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
