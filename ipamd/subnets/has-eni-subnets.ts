import type { IpamdConfig } from '../config/options.ts';
import type { Subnets } from './open-subnets.ts';

/** Reports whether the cluster is given any subnet for ENIs: by the ConfigMap, or to nodes and Pods that nominate it. */
export function hasEniSubnets(
  { onlyNominatedEniSubnets }: Pick<IpamdConfig, 'onlyNominatedEniSubnets'>,
  subnets: Pick<Subnets, 'config'>,
): boolean {
  return subnets.config() !== undefined || onlyNominatedEniSubnets.length > 0;
}
