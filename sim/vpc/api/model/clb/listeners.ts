import type {
  CreateListenerResponse,
  DescribeListenersResponse,
  Listener,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import { writtenTime } from '../limits.ts';
import { wireCertificates } from './layer7.ts';
import { requireQuota } from './quotas.ts';
import { LISTENER_PROTOCOLS, readListener, requireFreePorts } from './read-listener.ts';
import { withoutRedirects } from './redirects.ts';
import { changeLater } from './tasks.ts';
import type { ModelListener, ModelLoadBalancer } from './types.ts';
import { wireRule } from './wire-rule.ts';

/** Fewer than 50 in one call. */
const MOST_PORTS = 49;
const MOST_DELETED = 20;
const MOST_DESCRIBED = 100;
const MOST_NAME = 80;

/** Answers CreateListener: one listener a port, all with the same settings; all of them, or none. */
export function createListeners(call: ModelCall): Partial<CreateListenerResponse> {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const protocol = params.choice('Protocol', LISTENER_PROTOCOLS, 'TCP');
  const ports = params.integers('Ports', MOST_PORTS, 1, 65_535);
  if (ports.length === 0) throw new ApiError('InvalidParameterValue.Length', 'Ports is empty.');
  const names = params.labels('ListenerNames', MOST_PORTS);
  if (params.has('ListenerNames') && names.length !== ports.length) {
    throw new ApiError('InvalidParameterValue.Length', 'ListenerNames must be as many as Ports.');
  }
  requireNames(names);
  requireFreePorts(balancer, protocol, ports);
  requireQuota(balancer.listeners.size + ports.length, state.clb.limits.listeners, `listeners of one load balancer`);
  const settings = readListener(state, params, protocol);
  const made = ports.map((port, index): ModelListener => {
    const listenerId = state.nextId('lbl');
    const name = names[index] ?? '';
    return { ...settings, listenerId, name, protocol, port, createdAtMs: state.nowMs, targets: new Map() };
  });
  changeLater(call, balancer, (before) => ({
    ...before,
    listeners: new Map([...before.listeners, ...made.map((one) => [one.listenerId, one] as const)]),
  }));
  return { ListenerIds: made.map(({ listenerId }) => listenerId) };
}

/** Answers DescribeListeners: all at once, without pages. */
export function describeListeners({ state, params, asOfMs }: ModelCall): Partial<DescribeListenersResponse> {
  const balancer = state.clb.balancer(params.text('LoadBalancerId'), asOfMs);
  const ids = params.texts('ListenerIds', MOST_DESCRIBED);
  const protocol = params.has('Protocol') ? params.choice('Protocol', LISTENER_PROTOCOLS, 'TCP') : undefined;
  const port = params.has('Port') ? params.integer('Port', 0, 1, 65_535) : undefined;
  const found = [...balancer.listeners.values()].filter(
    (listener) =>
      (ids.length === 0 || ids.includes(listener.listenerId)) &&
      (protocol === undefined || listener.protocol === protocol) &&
      (port === undefined || listener.port === port),
  );
  return { Listeners: found.map(wireListener), TotalCount: found.length };
}

/** Answers ModifyListener. Protocol and port stay: the API has no parameters for them. */
export function modifyListener(call: ModelCall): object {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const listener = listenerOf(balancer, params.text('ListenerId'));
  const name = params.text('ListenerName', MOST_NAME);
  const settings = readListener(state, params, listener.protocol, listener);
  changeLater(call, balancer, (before) => {
    const now = before.listeners.get(listener.listenerId) ?? listener;
    return withListener(before, { ...now, ...settings, name: name === '' ? now.name : name });
  });
  return {};
}

/** Answers DeleteListener. */
export function deleteListener(call: ModelCall): object {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const { listenerId } = listenerOf(balancer, params.text('ListenerId'));
  changeLater(call, balancer, (before) => without(before, [listenerId]));
  return {};
}

/** Answers DeleteLoadBalancerListeners: without ids, and with an empty list of them, it deletes every listener. */
export function deleteListeners(call: ModelCall): object {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const ids = params.texts('ListenerIds', MOST_DELETED);
  const unknown = ids.filter((id) => !balancer.listeners.has(id));
  if (unknown.length > 0) {
    throw new ApiError('InvalidParameter', `some ListenerId ${JSON.stringify(unknown)} not found`);
  }
  const doomed = ids.length === 0 ? [...balancer.listeners.keys()] : ids;
  changeLater(call, balancer, (before) => without(before, doomed));
  return {};
}

/** @throws ApiError InvalidParameter.ListenerIdNotFound for one of another load balancer too */
export function listenerOf(balancer: ModelLoadBalancer, listenerId: string): ModelListener {
  const listener = balancer.listeners.get(listenerId);
  if (listener !== undefined) return listener;
  throw new ApiError(
    'InvalidParameter.ListenerIdNotFound',
    `The listener ${listenerId} of ${balancer.loadBalancerId} does not exist.`,
  );
}

/** The load balancer with a listener replaced. */
export function withListener(balancer: ModelLoadBalancer, listener: ModelListener): ModelLoadBalancer {
  return { ...balancer, listeners: new Map(balancer.listeners).set(listener.listenerId, listener) };
}

function without(balancer: ModelLoadBalancer, doomed: readonly string[]): ModelLoadBalancer {
  const rules = doomed.flatMap((id) => [...(balancer.listeners.get(id)?.layer7?.rules.keys() ?? [])]);
  const left = new Map([...balancer.listeners].filter(([id]) => !doomed.includes(id)));
  return withoutRedirects({ ...balancer, listeners: left }, new Set(rules));
}

function requireNames(names: readonly string[]): void {
  if (names.every((name) => name.length >= 1 && name.length <= MOST_NAME)) return;
  throw new ApiError('InvalidParameterValue.Length', `A name in ListenerNames has not 1 to ${MOST_NAME} characters.`);
}

function wireListener(listener: ModelListener): Listener {
  const { healthCheck, idleConnectTimeout, layer7 } = listener;
  return {
    ListenerId: listener.listenerId,
    ListenerName: listener.name,
    Protocol: listener.protocol,
    Port: listener.port,
    EndPort: 0,
    ...(healthCheck === undefined ? {} : { HealthCheck: { ...healthCheck } }),
    Scheduler: listener.scheduler,
    SessionExpireTime: listener.sessionExpireTime,
    SessionType: 'NORMAL',
    TargetType: 'NODE',
    DeregisterTargetRst: listener.deregisterTargetRst,
    ...(idleConnectTimeout === undefined ? {} : { IdleConnectTimeout: idleConnectTimeout }),
    ...(layer7 === undefined
      ? {}
      : { SniSwitch: layer7.isSni ? 1 : 0, Rules: [...layer7.rules.values()].map((rule) => wireRule(listener, rule)) }),
    ...(layer7?.certificates === undefined ? {} : { Certificate: wireCertificates(layer7.certificates) }),
    CreateTime: writtenTime(listener.createdAtMs),
  };
}
