import type { ListenerPath, ModelListener, ModelLoadBalancer } from './types.ts';

/** How packets of a listener go; undefined for one that is not of plain TCP or UDP: no packets are simulated for it. */
export function listenerPath(balancer: ModelLoadBalancer, listener: ModelListener): ListenerPath | undefined {
  const { protocol, healthCheck, idleConnectTimeout: idleSeconds } = listener;
  if ((protocol !== 'TCP' && protocol !== 'UDP') || healthCheck === undefined) return undefined;
  if (idleSeconds === undefined) return undefined;
  return {
    listenerId: listener.listenerId,
    vip: balancer.vip,
    protocol,
    port: listener.port,
    isSticky: listener.sessionExpireTime > 0 || listener.scheduler === 'IP_HASH',
    resets: listener.deregisterTargetRst,
    idleSeconds,
    healthCheck,
    targets: [...listener.targets.values()].map(({ ip, port, weight }) => ({ ip, port, weight })),
  };
}
