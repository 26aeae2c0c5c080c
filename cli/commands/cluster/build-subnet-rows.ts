import type { SubnetSupply } from '../../../crd/subnet-supply.ts';
import { prefixLength } from '../../../dataplane/ip-prefix.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { type NecAddress, necAddresses } from './build-address-index.ts';
import { buildForecast, countCreations, type Forecast, type Growth } from './build-forecast.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { countFree } from './grow-nodes.ts';
import type { SubnetSupplies } from './read-published.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';
import { spanText } from './render-span.ts';

/** One subnet from which nodes get IPv4 addresses. */
type SubnetRow = {
  readonly subnetId: string;
  readonly cidr: string;
  readonly zone: string;
  /** Usable addresses of the subnet; undefined when not known. */
  readonly total: number | undefined;
  /** Addresses in use by anyone in the VPC; undefined where `free` is. */
  readonly used: number | undefined;
  /** Free addresses as the cloud has them, else as ipamd publishes them; undefined without both. */
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
 * Returns a row for every subnet of an ENI and every one that ipamd publishes, the fullest first. With `before`, an earlier
 * read, the growth is computed from the addresses added and removed between the two reads.
 */
export function buildSubnetRows(
  facts: ClusterFacts,
  before?: ClusterFacts,
  supplies?: SubnetSupplies,
): readonly SubnetRow[] {
  const published = supplies?.bySubnet ?? new Map<string, SubnetSupply>();
  const freeOf = supplies === undefined ? undefined : countFree(supplies, facts.necs);
  const usages = usageBySubnet(facts, published);
  const earlier = before === undefined ? undefined : usageBySubnet(before);
  const cloudSubnets = new Map(
    (facts.cloud === undefined ? [] : (ifKnown(facts.cloud)?.subnets ?? [])).map((one) => [one.subnetId, one]),
  );
  const creations = before === undefined ? creationsOf(facts) : undefined;
  const rows = [...usages].map(([subnetId, drawn]): SubnetRow => {
    const subnet = cloudSubnets.get(subnetId);
    const supply = published.get(subnetId);
    const cidr = subnet?.cidr ?? supply?.cidr ?? drawn.cidr;
    const total = subnet?.totalIps ?? supply?.total ?? sizeOf(cidr);
    const free = subnet?.freeIps ?? freeOf?.get(subnetId);
    const growth =
      before === undefined || earlier === undefined
        ? creationGrowth(creations, subnetId, facts.takenAtMs)
        : sampleGrowth(drawn, earlier.get(subnetId), facts.takenAtMs - before.takenAtMs);
    return {
      subnetId,
      cidr,
      zone: subnet?.zone ?? supply?.zone ?? '',
      total,
      used: total === undefined || free === undefined ? undefined : total - free,
      free,
      ours: drawn.ips.size,
      nodes: [...drawn.nodes].sort(),
      enis: drawn.enis.size,
      forecast: buildForecast(free, growth),
    };
  });
  return rows.toSorted((a, b) => fullness(b) - fullness(a) || compareTexts(a.subnetId, b.subnetId));
}

type SubnetUsage = {
  cidr: string;
  readonly ips: Set<string>;
  readonly nodes: Set<string>;
  readonly enis: Set<string>;
};

/** Returns the use of IPv4 subnets. IPv6 subnets are left out, as their addresses are never used up. */
function usageBySubnet(
  facts: Pick<ClusterFacts, 'necs'>,
  published: ReadonlyMap<string, SubnetSupply> = new Map(),
): ReadonlyMap<string, SubnetUsage> {
  const unused = (): SubnetUsage => ({ cidr: '', ips: new Set(), nodes: new Set(), enis: new Set() });
  const usages = new Map([...published.keys()].map((id) => [id, unused()]));
  for (const nec of facts.necs) {
    for (const eni of nec.status.eniInfos ?? []) {
      if (eni.subnetID === undefined) continue;
      const one = usages.get(eni.subnetID) ?? unused();
      usages.set(eni.subnetID, one);
      one.cidr = eni.subnetCIDR ?? one.cidr;
      one.nodes.add(nec.key);
      one.enis.add(eni.eniID);
    }
    for (const entry of necAddresses(nec)) if (isIpv4(entry)) usages.get(entry.subnetId)?.ips.add(entry.ip);
  }
  return usages;
}

function isIpv4({ ip }: NecAddress): boolean {
  return !ip.includes(':');
}

type Creations =
  | { readonly of: string; readonly bySubnet: ReadonlyMap<string, readonly number[]> }
  | { readonly why: string };

/**
 * Returns creation times by subnet: of VpcIPs when ipamd writes any, else of Pods. Both are created when an address is
 * first used.
 */
function creationsOf(facts: ClusterFacts): Creations {
  const vips = ifKnown(facts.vips)?.filter(({ ip, isEnis }) => !isEnis && !ip.includes(':')) ?? [];
  if (vips.length > 0) {
    return { of: 'VpcIPs', bySubnet: grouped(vips.map(({ subnetId, createdMs }) => [subnetId, createdMs])) };
  }
  const pods = ifKnown(facts.pods);
  if (pods === undefined) return { why: 'neither VpcIPs nor Pods can be listed' };
  const subnetOf = new Map(facts.necs.flatMap(necAddresses).map(({ ip, subnetId }) => [ip, subnetId]));
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

function creationGrowth(creations: Creations | undefined, subnetId: string, nowMs: number): Growth {
  if (creations === undefined) return { kind: 'unknown', why: 'nothing was measured' };
  if ('why' in creations) return { kind: 'unknown', why: creations.why };
  return { kind: 'births', of: creations.of, windows: countCreations(creations.bySubnet.get(subnetId) ?? [], nowMs) };
}

function sampleGrowth(now: SubnetUsage, before: SubnetUsage | undefined, spanMs: number): Growth {
  const earlier = before?.ips ?? new Set<string>();
  return {
    kind: 'sample',
    spanMs,
    added: [...now.ips].filter((ip) => !earlier.has(ip)).length,
    removed: [...earlier].filter((ip) => !now.ips.has(ip)).length,
  };
}

function sizeOf(cidr: string): number | undefined {
  return cidr === '' ? undefined : Math.max(0, 2 ** (32 - prefixLength(cidr)) - RESERVED);
}

function fullness({ total, used, ours }: SubnetRow): number {
  return total === undefined || total === 0 ? 0 : (used ?? ours) / total;
}

const COLUMNS: readonly Column<SubnetRow>[] = [
  { title: 'SUBNET', text: ({ subnetId }) => subnetId },
  { title: 'CIDR', text: ({ cidr }) => cidr, priority: 4 },
  { title: 'ZONE', text: ({ zone }) => zone, priority: 2 },
  { title: 'TOTAL', text: ({ total }) => countText(total), align: 'right', priority: 6 },
  { title: 'USED', text: ({ used }) => countText(used), align: 'right', priority: 5 },
  {
    title: 'FREE',
    text: ({ free }) => countText(free),
    align: 'right',
    color: ({ free }) => (free === 0 ? 'red' : undefined),
  },
  { title: 'OURS', text: ({ ours }) => `${ours}`, align: 'right' },
  { title: 'NODES', text: ({ nodes }) => `${nodes.length}`, align: 'right' },
  { title: 'ENIS', text: ({ enis }) => `${enis}`, align: 'right', priority: 3 },
  {
    title: 'RUNS OUT',
    text: ({ forecast }) => forecastText(forecast),
    color: ({ forecast }) => (forecast.kind === 'exhausted' ? 'red' : undefined),
  },
  { title: 'FROM', text: ({ forecast }) => ('ground' in forecast ? forecast.ground : ''), priority: 1 },
];

/** Renders a table row for each subnet. */
export function renderSubnets(rows: readonly SubnetRow[], layout: ClusterLayout): string {
  return rows.length === 0
    ? 'no ENI of the cluster names its subnet, and ipamd has published none\n'
    : renderTable(rows, COLUMNS, layout);
}

/**
 * Writes a forecast in short form. '>5h (pace of 1h), >9d (7d)' means: not before these times, at the growth of the
 * last hour and of the last 7 days.
 */
function forecastText(forecast: Forecast): string {
  switch (forecast.kind) {
    case 'unknown':
      return `not known: ${forecast.why}`;
    case 'exhausted':
      return 'now: nothing is free';
    case 'not-growing':
      return 'not growing';
    case 'not-before': {
      const texts = forecast.byWindow.map(({ windowMs, soonestMs }, index) => {
        const pace = index === 0 ? 'pace of ' : '';
        return `>${spanText(soonestMs)} (${pace}${spanText(windowMs)})`;
      });
      return texts.join(', ');
    }
    case 'range':
      return forecast.latestMs === undefined
        ? `>${spanText(forecast.soonestMs)}, if at all`
        : `${spanText(forecast.soonestMs)} to ${spanText(forecast.latestMs)}`;
  }
}
