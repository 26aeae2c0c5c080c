import type { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { ModelLoadBalancer } from '../../../sim/vpc/api/model/clb/types.ts';

/** What somebody does to a load balancer who knows nothing of its controller. */
export const TAMPERING = ['a target off', 'a weight', 'a listener renamed', 'a listener deleted'] as const;
type Tampering = (typeof TAMPERING)[number];

/** Does it to the first listener, and its first target; nothing where there is none. It is not waited for. */
export function tamper(host: CloudHost, balancer: ModelLoadBalancer, what: Tampering): void {
  const [listener] = balancer.listeners.values();
  if (listener === undefined) return;
  const api = createInProcessApi(host);
  const { signal } = new AbortController();
  const { loadBalancerId: LoadBalancerId } = balancer;
  const { listenerId: ListenerId } = listener;
  const [target] = listener.targets.values();
  const place = target?.type === 'CVM' ? { InstanceId: target.instanceId ?? '' } : { EniIp: target?.ip ?? '' };
  const at = { ...place, Port: target?.port ?? 0 };
  const call = async (): Promise<unknown> => {
    switch (what) {
      case 'a target off':
        if (target === undefined) return;
        return await api.call('BatchDeregisterTargets', { LoadBalancerId, Targets: [{ ...at, ListenerId }] }, signal);
      case 'a weight': {
        if (target === undefined) return;
        const ModifyList = [{ ListenerId, Targets: [at], Weight: 3 }];
        return await api.call('BatchModifyTargetWeight', { LoadBalancerId, ModifyList }, signal);
      }
      case 'a listener renamed':
        return await api.call('ModifyListener', { LoadBalancerId, ListenerId, ListenerName: 'by hand' }, signal);
      case 'a listener deleted':
        return await api.call('DeleteLoadBalancerListeners', { LoadBalancerId, ListenerIds: [ListenerId] }, signal);
    }
  };
  // What goes wrong for a person is tried by nobody again, and what hangs is not waited for.
  void call().catch(() => {});
}
