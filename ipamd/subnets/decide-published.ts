import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { heldIn, type SubnetSupply } from '../../crd/subnet-supply.ts';
import type { SubnetState } from './subnet-book.ts';

/** What is told of the subnets depends on this. */
export type PublishedFacts = {
  readonly subnets: readonly SubnetState[];
  /** Of the cluster. */
  readonly configured: readonly string[];
  /** --only-nominated-eni-subnets */
  readonly onlyNominated: ReadonlySet<string>;
  /** Of all NodeENIConfigs. */
  readonly statuses: Iterable<NodeEniConfigStatus>;
  /** Named by nodes and Pods for ENIs of theirs. */
  readonly named: ReadonlySet<string>;
};

/**
 * Writes what the subnets that matter have left, as data of the ConfigMap: the cluster's, those that somebody names, and
 * those in which ENIs are. Others of the VPC are nobody's business. Keys are in order: equal facts give equal text. Pure.
 */
export function decidePublished(facts: PublishedFacts): Readonly<Record<string, string>> {
  const held = new Map<string, number>();
  for (const status of facts.statuses)
    for (const { subnetId, count } of heldIn(status)) held.set(subnetId, (held.get(subnetId) ?? 0) + count);
  const configured = new Set(facts.configured);
  const isOfUse = ({ subnetId }: SubnetState): boolean =>
    configured.has(subnetId) || facts.onlyNominated.has(subnetId) || facts.named.has(subnetId) || held.has(subnetId);
  const entries = facts.subnets.filter(isOfUse).map((subnet): readonly [string, string] => {
    const { subnetId, zone, cidr, freeIps, totalIps, isBlocked } = subnet;
    const supply: SubnetSupply = {
      ...{ zone, cidr, free: freeIps, total: totalIps, held: held.get(subnetId) ?? 0 },
      ...(isBlocked ? { blocked: true } : {}),
      ...(facts.onlyNominated.has(subnetId) ? { onlyNominated: true } : {}),
      ...(configured.has(subnetId) ? { common: true } : {}),
    };
    return [subnetId, JSON.stringify(supply)];
  });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}
