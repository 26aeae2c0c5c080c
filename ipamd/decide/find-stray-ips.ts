import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { NodeView } from './node-view.ts';
import { usedIps } from './observed-eni.ts';

type StrayFacts = Pick<NodeView, 'inUse' | 'movedTo' | 'subnets' | 'claimSubnets'>;

/**
 * Lists the addresses that live Pods of the node use and no ENI in the status has: ENIs or addresses were left out of it.
 * Addresses outside the subnets of ENIs are those of other networks.
 */
export function findStrayIps(status: NodeEniConfigStatus, facts: StrayFacts): readonly string[] {
  const { inUse = [], movedTo, subnets, claimSubnets = [] } = facts;
  const listed = usedIps(status);
  const unlisted = [...inUse].filter((ip) => !listed.has(ip) && movedTo?.has(ip) !== true);
  if (unlisted.length === 0) return [];
  const ofEnis = (status.eniInfos ?? []).flatMap(({ subnetCIDR }) => subnetCIDR ?? []);
  const cidrs = new Set([...[...subnets, ...claimSubnets].map(({ cidr }) => cidr), ...ofEnis]);
  return unlisted.filter((ip) => [...cidrs].some((cidr) => isInCidr(ip, cidr)));
}
