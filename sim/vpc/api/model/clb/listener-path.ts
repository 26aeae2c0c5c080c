import type { SecurityGroupBook } from '../security-group-book.ts';
import type { ListenerPath, ModelListener, ModelLoadBalancer } from './types.ts';

/**
 * How packets of a listener go; undefined for one that is not of plain TCP or UDP: no packets are simulated for it.
 */
export function listenerPath(
  balancer: ModelLoadBalancer,
  listener: ModelListener,
  groups: SecurityGroupBook,
): ListenerPath | undefined {
  const { protocol, port, healthCheck, idleConnectTimeout: idleSeconds } = listener;
  if ((protocol !== 'TCP' && protocol !== 'UDP') || healthCheck === undefined) return undefined;
  if (idleSeconds === undefined) return undefined;
  const admission = admissionOf(balancer, protocol, port, groups);
  return {
    listenerId: listener.listenerId,
    vip: balancer.vip,
    protocol,
    port,
    isSticky: listener.sessionExpireTime > 0 || listener.scheduler === 'IP_HASH',
    resets: listener.deregisterTargetRst,
    ...(admission === undefined ? {} : { admission }),
    ...(balancer.passToTarget ? { passes: true } : {}),
    idleSeconds,
    healthCheck,
    targets: [...listener.targets.values()].map(({ ip, port: own, weight }) => ({ ip, port: own, weight })),
  };
}

/** Who may connect to a port of a load balancer, by its security groups; undefined: it has none, and everyone may. */
export function admissionOf(
  { securityGroupIds }: ModelLoadBalancer,
  protocol: 'TCP' | 'UDP',
  port: number,
  groups: SecurityGroupBook,
): ListenerPath['admission'] {
  if (securityGroupIds.length === 0) return undefined;
  return groups
    .rulesOf(securityGroupIds)
    .filter((rule) => (rule.protocol ?? protocol) === protocol)
    .filter(
      ({ port: first, lastPort = first }) => first === undefined || (first <= port && port <= (lastPort ?? first)),
    )
    .map(({ cidr, isAccepted }) => ({ cidr, isAccepted }));
}
