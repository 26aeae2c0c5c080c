import { prefixLength } from '../../dataplane/ip-prefix.ts';
import { ifKnown } from '../node/known.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { type Holding, holdingsOf } from './find-addresses.ts';
import { countBirths, type Forecast, forecastOf, type Growth } from './find-forecast.ts';

/** One subnet from which nodes get IPv4 addresses. */
export type SubnetRow = {
  readonly subnetId: string;
  readonly cidr: string;
  readonly zone: string;
  /** Usable addresses of the subnet; undefined when not known. */
  readonly total: number | undefined;
  /** Addresses in use by anyone in the VPC, from the cloud; undefined without the cloud. */
  readonly used: number | undefined;
  /** Free addresses; undefined without the cloud, because others may use the subnet too. */
  readonly free: number | undefined;
  /** Addresses in this cluster's NodeENIConfigs, primary addresses of ENIs included. */
  readonly ours: number;
  readonly nodes: readonly string[];
  readonly enis: number;
  readonly forecast: Forecast;
};

/**
 * Addresses that the cloud reserves: network, gateway and broadcast.
 * @see https://cloud.tencent.com/document/product/215/20046
 */
const RESERVED = 3;

/**
 * Returns a row for every subnet of an ENI, the fullest first. With `before`, an earlier read, the growth is computed
 * from the addresses added and removed between the two reads.
 */
export function findSubnetRows(facts: ClusterFacts, before?: ClusterFacts): readonly SubnetRow[] {
  const held = heldBySubnet(facts);
  const earlier = before === undefined ? undefined : heldBySubnet(before);
  const told = new Map(
    (facts.cloud === undefined ? [] : (ifKnown(facts.cloud)?.subnets ?? [])).map((one) => [one.subnetId, one]),
  );
  const births = before === undefined ? birthsOf(facts) : undefined;
  const rows = [...held].map(([subnetId, drawn]): SubnetRow => {
    const subnet = told.get(subnetId);
    const cidr = subnet?.cidr ?? drawn.cidr;
    const free = subnet?.freeIps;
    const growth =
      before === undefined || earlier === undefined
        ? birthGrowth(births, subnetId, facts.takenAtMs)
        : sampleGrowth(drawn, earlier.get(subnetId), facts.takenAtMs - before.takenAtMs);
    return {
      subnetId,
      cidr,
      zone: subnet?.zone ?? '',
      total: subnet?.totalIps ?? sizeOf(cidr),
      used: subnet === undefined ? undefined : subnet.totalIps - subnet.freeIps,
      free,
      ours: drawn.ips.size,
      nodes: [...drawn.nodes].sort(),
      enis: drawn.enis.size,
      forecast: forecastOf(free, growth),
    };
  });
  return rows.toSorted((a, b) => fullness(b) - fullness(a) || (a.subnetId < b.subnetId ? -1 : 1));
}

type Drawn = {
  cidr: string;
  readonly ips: Set<string>;
  readonly nodes: Set<string>;
  readonly enis: Set<string>;
};

/** Returns the use of IPv4 subnets. IPv6 subnets are left out, as their addresses are never used up. */
function heldBySubnet(facts: Pick<ClusterFacts, 'necs'>): ReadonlyMap<string, Drawn> {
  const drawn = new Map<string, Drawn>();
  for (const nec of facts.necs) {
    for (const eni of nec.status.eniInfos ?? []) {
      if (eni.subnetID === undefined) continue;
      const one = drawn.get(eni.subnetID) ?? { cidr: '', ips: new Set(), nodes: new Set(), enis: new Set() };
      drawn.set(eni.subnetID, one);
      one.cidr = eni.subnetCIDR ?? one.cidr;
      one.nodes.add(nec.key);
      one.enis.add(eni.eniID);
    }
    for (const holding of holdingsOf(nec)) if (isIpv4(holding)) drawn.get(holding.subnetId)?.ips.add(holding.ip);
  }
  return drawn;
}

function isIpv4({ ip }: Holding): boolean {
  return !ip.includes(':');
}

type Births =
  | { readonly of: string; readonly bySubnet: ReadonlyMap<string, readonly number[]> }
  | { readonly why: string };

/**
 * Returns creation times by subnet: of VpcIPs when ipamd writes any, else of Pods. Both are created when an address is
 * first used.
 */
function birthsOf(facts: ClusterFacts): Births {
  const vips = ifKnown(facts.vips)?.filter(({ ip, isEnis }) => !isEnis && !ip.includes(':')) ?? [];
  if (vips.length > 0) {
    return { of: 'VpcIPs', bySubnet: grouped(vips.map(({ subnetId, createdMs }) => [subnetId, createdMs])) };
  }
  const pods = ifKnown(facts.pods);
  if (pods === undefined) return { why: 'neither VpcIPs nor Pods can be listed' };
  const subnetOf = new Map(facts.necs.flatMap(holdingsOf).map(({ ip, subnetId }) => [ip, subnetId]));
  const pairs = pods.flatMap(({ ips, createdMs }) => ips.map((ip) => [subnetOf.get(ip) ?? '', createdMs] as const));
  return { of: 'Pods', bySubnet: grouped(pairs) };
}

function grouped(pairs: readonly (readonly [string, number])[]): ReadonlyMap<string, readonly number[]> {
  const groups = new Map<string, number[]>();
  for (const [key, value] of pairs) {
    const there = groups.get(key);
    if (there === undefined) groups.set(key, [value]);
    else there.push(value);
  }
  return groups;
}

function birthGrowth(births: Births | undefined, subnetId: string, nowMs: number): Growth {
  if (births === undefined) return { kind: 'unknown', why: 'nothing was measured' };
  if ('why' in births) return { kind: 'unknown', why: births.why };
  return { kind: 'births', of: births.of, windows: countBirths(births.bySubnet.get(subnetId) ?? [], nowMs) };
}

function sampleGrowth(now: Drawn, before: Drawn | undefined, spanMs: number): Growth {
  const earlier = before?.ips ?? new Set<string>();
  return {
    kind: 'sample',
    spanMs,
    came: [...now.ips].filter((ip) => !earlier.has(ip)).length,
    went: [...earlier].filter((ip) => !now.ips.has(ip)).length,
  };
}

function sizeOf(cidr: string): number | undefined {
  return cidr === '' ? undefined : Math.max(0, 2 ** (32 - prefixLength(cidr)) - RESERVED);
}

function fullness({ total, used, ours }: SubnetRow): number {
  return total === undefined || total === 0 ? 0 : (used ?? ours) / total;
}
