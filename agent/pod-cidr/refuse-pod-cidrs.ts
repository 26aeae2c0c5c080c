import { isInCidr } from '../../crd/ip-text.ts';
import type { Supply } from '../journal/supply.ts';

/** A network that is in use for something else than GlobalRoute Pods of this node. */
export type OccupiedNetwork = { readonly cidr: string; readonly what: string };

/** Sources of occupied networks. */
type OccupiedSources = {
  readonly supply: Supply | undefined;
  /** Networks of the primary interface, as the kernel has its addresses. */
  readonly primary: readonly string[];
  readonly vpcCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
};

/**
 * Returns why no Pod may get an address of a block, by block; blocks that may be used are not in it. The bridge of a block that
 * overlaps the VPC would take packets for other machines, and one that overlaps the Services would take their addresses. Blocks of
 * other nodes are not compared here: the agent reads only its own Node; ipamd compares all.
 */
export function refusePodCidrs(
  cidrs: readonly string[],
  occupied: readonly OccupiedNetwork[],
): ReadonlyMap<string, string> {
  return new Map(
    cidrs.flatMap((cidr) => {
      const found = occupied.find((one) => isOverlap(cidr, one.cidr));
      return found === undefined ? [] : [[cidr, `podCIDR ${cidr} overlaps ${found.what}, ${found.cidr}`] as const];
    }),
  );
}

/** Reports whether two networks overlap: then one contains the other, and so its first address. */
export function isOverlap(a: string, b: string): boolean {
  return isInCidr(firstOf(a), b) || isInCidr(firstOf(b), a);
}

function firstOf(cidr: string): string {
  return cidr.split('/', 1)[0] ?? '';
}

/** Lists the networks in which no block of this node may be. */
export function occupiedNetworks({
  supply,
  primary,
  vpcCidrs,
  serviceCidrs,
}: OccupiedSources): readonly OccupiedNetwork[] {
  const enis = [...(supply?.enis ?? []), ...(supply?.direct?.enis ?? [])];
  return [
    ...primary.map((cidr) => ({ cidr, what: 'the network of the primary interface' })),
    ...enis.flatMap(({ eniId, primary: own }) =>
      own.map(({ subnetCidr }) => ({ cidr: subnetCidr, what: `the subnet of ${eniId}` })),
    ),
    ...vpcCidrs.map((cidr) => ({ cidr, what: 'a network of --vpc-cidr' })),
    ...serviceCidrs.map((cidr) => ({ cidr, what: 'the range of Services' })),
  ];
}
