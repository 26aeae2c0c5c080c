import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { readSubnetSupply, type SubnetSupply, sumSubnetUsage } from '../../crd/subnet-supply.ts';
import { recordOf } from '../../runtime/json.ts';
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
  const usedBySubnet = sumSubnetUsage(facts.statuses);
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

/** Lists the subnets of the cluster's configuration in what was published. Pure. */
export function readPublishedConfig(data: unknown): readonly string[] {
  return Object.entries(recordOf(data)).flatMap(([id, text]) => (readSubnetSupply(text)?.common === true ? [id] : []));
}

/** A subnet with addresses that are in use and are not those of the cluster's ENIs. */
export type SharedSubnet = { readonly subnetId: string; readonly foreignIps: number };

/** What decides whether subnets of the configuration are shared; only these are looked at. */
export type SharedFacts = Pick<PublishedFacts, 'configured' | 'statuses'> & {
  readonly subnets: readonly Pick<SubnetState, 'subnetId' | 'freeIps' | 'totalIps'>[];
};

/**
 * Finds the subnets of the configuration that others use too: machines, among them the cluster's own nodes, load balancers,
 * other clusters. What NodeENIConfigs have, or have on record to request, is the cluster's. For a moment the numbers may
 * disagree, as they were read at different times.
 */
export function decideSharedSubnets({ subnets, configured, statuses }: SharedFacts): readonly SharedSubnet[] {
  const own = sumSubnetUsage(statuses);
  return subnets
    .filter(({ subnetId }) => configured.includes(subnetId))
    .map(({ subnetId, totalIps, freeIps }) => ({
      subnetId,
      foreignIps: totalIps - freeIps - (own.get(subnetId) ?? 0),
    }))
    .filter(({ foreignIps }) => foreignIps > 0);
}
