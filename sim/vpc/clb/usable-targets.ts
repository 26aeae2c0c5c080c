import type { ListenerPath } from '../api/model/clb/types.ts';

/**
 * The targets that get connections: those found well, and when none of them has a weight, all: a load balancer rather tries.
 * Without checks all are. @param alive what checks found, by `ip:port`
 */
export function usableTargets(
  { targets, healthCheck }: Pick<ListenerPath, 'targets' | 'healthCheck'>,
  alive: ReadonlyMap<string, boolean> | undefined,
): ListenerPath['targets'] {
  if (healthCheck.HealthSwitch === 0) return targets;
  const well = targets.filter(({ ip, port }) => alive?.get(`${ip}:${port}`) === true);
  return well.some(({ weight }) => weight > 0) ? well : targets;
}
