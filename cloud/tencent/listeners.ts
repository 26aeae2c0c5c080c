import { LISTENERS_PER_DELETION, type ListenerPort, type ListenerSettings, PORTS_PER_CREATION } from '../listeners.ts';
import type { Caller } from './caller.ts';
import { certificateRequest } from './certificate-request.ts';
import { checkRequest } from './check-request.ts';
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
  const { certificate, isSni } = settings;
  return {
    ...(scheduler === undefined ? {} : { Scheduler: scheduler }),
    ...(sessionSeconds === undefined ? {} : { SessionExpireTime: sessionSeconds }),
    ...(idleSeconds === undefined ? {} : { IdleConnectTimeout: idleSeconds }),
    ...(resetsOnDeregister === undefined ? {} : { DeregisterTargetRst: resetsOnDeregister }),
    ...(healthCheck === undefined ? {} : { HealthCheck: checkRequest(healthCheck) }),
    ...(certificate === undefined ? {} : certificateRequest(certificate)),
    ...(isSni === undefined ? {} : { SniSwitch: isSni ? 1 : 0 }),
  };
}
