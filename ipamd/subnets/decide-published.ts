import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { countSubnetUsage, type SubnetSupply } from '../../crd/subnet-supply.ts';
import type { SubnetState } from './subnet-cache.ts';

/** What the published data of subnets depends on. */
export type PublishedFacts = {
  readonly subnets: readonly SubnetState[];
  /** Which content of the ConfigMap `configured` is of. @see renderSubnetSource */
  readonly source: string;
  /** Subnets of the cluster's configuration. */
  readonly configured: readonly string[];
  /** --only-nominated-eni-subnets */
  readonly onlyNominated: ReadonlySet<string>;
  /** Of all NodeENIConfigs. */
  readonly statuses: Iterable<NodeEniConfigStatus>;
  /** Subnets that nodes and Pods name for their ENIs. */
  readonly named: ReadonlySet<string>;
};

/**
 * Renders the free addresses of the relevant subnets as data of the ConfigMap: those of the cluster, those that nodes
 * or Pods name, and those with ENIs. Other subnets of the VPC are left out. Keys are sorted: equal facts give equal
 * text.
 */
export function decidePublished(facts: PublishedFacts): Readonly<Record<string, string>> {
  const usedBySubnet = new Map<string, number>();
  for (const status of facts.statuses)
    for (const { subnetId, count } of countSubnetUsage(status))
      usedBySubnet.set(subnetId, (usedBySubnet.get(subnetId) ?? 0) + count);
  const configured = new Set(facts.configured);
  const isRelevant = ({ subnetId }: SubnetState): boolean =>
    configured.has(subnetId) ||
    facts.onlyNominated.has(subnetId) ||
    facts.named.has(subnetId) ||
    usedBySubnet.has(subnetId);
  const entries = facts.subnets.filter(isRelevant).map((subnet): readonly [string, string] => {
    const { subnetId, zone, cidr, freeIps, totalIps, isBlocked } = subnet;
    const supply: SubnetSupply = {
      ...{ zone, cidr, free: freeIps, total: totalIps, held: usedBySubnet.get(subnetId) ?? 0 },
      ...(isBlocked ? { blocked: true } : {}),
      ...(facts.onlyNominated.has(subnetId) ? { onlyNominated: true } : {}),
      ...(configured.has(subnetId) ? { common: true } : {}),
    };
    return [subnetId, JSON.stringify(supply)];
  });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}
