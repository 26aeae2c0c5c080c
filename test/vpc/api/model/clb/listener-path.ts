import type { ListenerPath, ModelListener, ModelLoadBalancer, SecurityRule } from './types.ts';

/**
 * How packets of a listener go; undefined for one that is not of plain TCP or UDP: no packets are simulated for it.
 * @param rules of security groups; a group that is not in it admits everyone
 */
export function listenerPath(
  balancer: ModelLoadBalancer,
  listener: ModelListener,
  rules: ReadonlyMap<string, readonly SecurityRule[]>,
): ListenerPath | undefined {
  const { protocol, port, healthCheck, idleConnectTimeout: idleSeconds } = listener;
  if ((protocol !== 'TCP' && protocol !== 'UDP') || healthCheck === undefined) return undefined;
  if (idleSeconds === undefined) return undefined;
  const admission = balancer.securityGroupIds
    .flatMap((id) => rules.get(id) ?? [OPEN])
    .filter((rule) => (rule.protocol ?? protocol) === protocol && (rule.port ?? port) === port)
    .map(({ cidr, isAccepted }) => ({ cidr, isAccepted }));
  return {
    listenerId: listener.listenerId,
    vip: balancer.vip,
    protocol,
    port,
    isSticky: listener.sessionExpireTime > 0 || listener.scheduler === 'IP_HASH',
    resets: listener.deregisterTargetRst,
    ...(balancer.securityGroupIds.length === 0 ? {} : { admission }),
    idleSeconds,
    healthCheck,
    targets: [...listener.targets.values()].map(({ ip, port: own, weight }) => ({ ip, port: own, weight })),
  };
}

const OPEN: SecurityRule = { cidr: '0.0.0.0/0', isAccepted: true };
