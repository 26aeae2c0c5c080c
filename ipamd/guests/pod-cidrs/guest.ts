import { RouteCache } from '../../../pod-routes/route-cache.ts';
import type { Term } from '../../calls/term.ts';
import { numberBlocks } from '../../config/cidr-blocks.ts';
import { blockSettingsOf } from '../../config/ipamd-config.ts';
import type { Guest } from '../../term/guest.ts';
import type { LeaderTerm } from '../../term/leader-term.ts';
import { keepClusterRoutes } from './keep-cluster-routes.ts';
import { keepPodCidrs } from './keep-pod-cidrs.ts';
import { SecondAllocator } from './second-allocator.ts';

/** Blocks of addresses for Nodes (`spec.podCIDR`), and the VPC's routes to them. */
export function podCidrs({ config, nodes, clock }: Pick<Term, 'config' | 'nodes' | 'clock'>): Guest {
  const settings = blockSettingsOf(config);
  // Of the process: it follows the Nodes from their first list on, leader or not.
  const secondAllocator = settings && new SecondAllocator(nodes, clock);
  return {
    name: 'pod-cidrs',
    isWanted: ({ grRoutes }) => settings !== undefined || grRoutes === 'ipamd',
    open: (term) => {
      const podRoutes = config.grRoutes === 'ipamd' ? new RouteCache(clock) : undefined;
      const routes = podRoutes === undefined ? {} : { routes: () => podRoutes.view() };
      const vpcCidrs = () => (areSubnetsKnown(term) ? term.subnets.all().map(({ cidr }) => cidr) : undefined);
      return {
        controllers: [
          ...(podRoutes === undefined ? [] : [(signal: AbortSignal) => keepClusterRoutes(term, podRoutes, signal)]),
          ...(settings === undefined || secondAllocator === undefined
            ? []
            : [
                (signal: AbortSignal) =>
                  keepPodCidrs(
                    { ...term, ...routes, secondAllocator, blocks: numberBlocks(settings), vpcCidrs },
                    signal,
                  ),
              ]),
        ],
      };
    },
  };
}

/** Reports whether the subnets of the VPC were described, or no instance shows that there is a VPC. */
function areSubnetsKnown({ subnets, instances, instanceIds }: LeaderTerm): boolean {
  const isOutside = (id: string): boolean => {
    const record = instances.find(id);
    return record !== undefined && record.instance?.vpcId === undefined;
  };
  return subnets.isReady || (subnets.config()?.vpcId === undefined && [...instanceIds()].every(isOutside));
}
