import { isInCidr, parseCidr } from '../../crd/ip-text.ts';
import { parseIpv4Number } from '../../runtime/ip-text.ts';
import type { SubnetState } from '../subnets/subnet-cache.ts';

type Range = { readonly first: number; readonly last: number };

/** Parsed networks: there are few of them and thousands of addresses in a pool, so each network is parsed once. */
const RANGES = new Map<string, Range | undefined>();
const MAX_RANGES = 4_096;

/** Finds the subnet of an address; undefined when no known subnet contains it. */
export function findSubnet(ip: string, subnets: readonly SubnetState[]): string | undefined {
  const bits = ip.includes(':') ? undefined : parseIpv4Number(ip, ip.length);
  if (bits === undefined) return subnets.find(({ cidr }) => isInCidr(ip, cidr))?.subnetId;
  return subnets.find(({ cidr }) => {
    const range = rangeOf(cidr);
    return range !== undefined && bits >= range.first && bits <= range.last;
  })?.subnetId;
}

function rangeOf(cidr: string): Range | undefined {
  if (RANGES.has(cidr)) return RANGES.get(cidr);
  if (RANGES.size >= MAX_RANGES) RANGES.clear();
  const parsed = parseCidr(cidr);
  const first = parsed?.family === 4 ? parseIpv4Number(parsed.address, parsed.address.length) : undefined;
  const hosts = 2 ** (32 - (parsed?.prefixLength ?? 0));
  const range = first === undefined ? undefined : { first, last: first + hosts - 1 };
  RANGES.set(cidr, range);
  return range;
}
