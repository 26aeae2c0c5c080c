import {
  type HealthCheck,
  LISTENERS_PER_DELETION,
  type ListenerPort,
  type ListenerSettings,
  PORTS_PER_CREATION,
} from '../listeners.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedListeners, decodeListeners } from './decode/listener.ts';
import { decodeAccepted } from './decode/load-balancer.ts';
import { requireCount } from './require-count.ts';

/** Creates the listener part of the port. */
export function createListenerPort(call: Caller): ListenerPort {
  return {
    list: async (loadBalancerId, context) =>
      decodeListeners(await call('DescribeListeners', { LoadBalancerId: loadBalancerId }, context)),
    create: async (loadBalancerId, { protocol, ports, settings }, context) => {
      const action = 'CreateListener';
      requireCount(action, 'ports', ports.length, PORTS_PER_CREATION);
      const request = {
        LoadBalancerId: loadBalancerId,
        Protocol: protocol,
        Ports: ports.map(({ port }) => port),
        ListenerNames: ports.map(({ name }) => name),
        ...settingsRequest(settings),
      };
      const answer = await call(action, request, context);
      return { listenerIds: decodeCreatedListeners(answer, ports.length), task: decodeAccepted(answer, action) };
    },
    modify: async (loadBalancerId, listenerId, { name, ...settings }, context) => {
      const action = 'ModifyListener';
      const request = {
        LoadBalancerId: loadBalancerId,
        ListenerId: listenerId,
        ...(name === undefined ? {} : { ListenerName: name }),
        ...settingsRequest(settings),
      };
      return decodeAccepted(await call(action, request, context), action);
    },
    delete: async (loadBalancerId, listenerIds, context) => {
      const action = 'DeleteLoadBalancerListeners';
      // An empty id would be none.
      const named = listenerIds.every((id) => id !== '') ? listenerIds.length : 0;
      requireCount(action, 'listeners', named, LISTENERS_PER_DELETION);
      const request = { LoadBalancerId: loadBalancerId, ListenerIds: [...listenerIds] };
      return decodeAccepted(await call(action, request, context), action);
    },
  };
}

function settingsRequest(settings: ListenerSettings) {
  const { scheduler, sessionSeconds, idleSeconds, resetsOnDeregister, healthCheck } = settings;
  return {
    ...(scheduler === undefined ? {} : { Scheduler: scheduler }),
    ...(sessionSeconds === undefined ? {} : { SessionExpireTime: sessionSeconds }),
    ...(idleSeconds === undefined ? {} : { IdleConnectTimeout: idleSeconds }),
    ...(resetsOnDeregister === undefined ? {} : { DeregisterTargetRst: resetsOnDeregister }),
    ...(healthCheck === undefined ? {} : { HealthCheck: checkRequest(healthCheck) }),
  };
}

/** The value of CheckPort for the port of the target. */
const PORT_OF_TARGET = -1;

function checkRequest(check: HealthCheck) {
  const { isOn, kind, intervalSeconds, timeoutSeconds, checkPort, source, exchange } = check;
  const { healthyThreshold, unhealthyThreshold } = check;
  return {
    ...(isOn === undefined ? {} : { HealthSwitch: isOn ? 1 : 0 }),
    ...(kind === undefined ? {} : { CheckType: kind }),
    ...(intervalSeconds === undefined ? {} : { IntervalTime: intervalSeconds }),
    ...(timeoutSeconds === undefined ? {} : { TimeOut: timeoutSeconds }),
    ...(healthyThreshold === undefined ? {} : { HealthNum: healthyThreshold }),
    ...(unhealthyThreshold === undefined ? {} : { UnHealthNum: unhealthyThreshold }),
    ...(checkPort === undefined ? {} : { CheckPort: checkPort === 'target' ? PORT_OF_TARGET : checkPort }),
    ...(source === undefined ? {} : { SourceIpType: source === 'vip' ? 0 : 1 }),
    ...httpRequest(check.http),
    ...(exchange === undefined
      ? {}
      : { ContextType: exchange.format, SendContext: exchange.send, RecvContext: exchange.receive }),
  };
}

function httpRequest({ path, domain, method, version, codes }: NonNullable<HealthCheck['http']> = {}) {
  return {
    ...(path === undefined ? {} : { HttpCheckPath: path }),
    ...(domain === undefined ? {} : { HttpCheckDomain: domain }),
    ...(method === undefined ? {} : { HttpCheckMethod: method }),
    ...(version === undefined ? {} : { HttpVersion: version }),
    ...(codes === undefined ? {} : { HttpCode: codes }),
  };
}
