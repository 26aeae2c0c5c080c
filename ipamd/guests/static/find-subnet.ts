import { isInCidr } from '../../../crd/ip-text.ts';
import { ipv4RangeOf } from '../../../crd/ipv4-range.ts';
import { parseIpv4Number } from '../../../runtime/ip-text.ts';
import type { SubnetState } from '../../subnets/subnet-cache.ts';

/** Finds the subnet of an address; undefined when no known subnet contains it. */
export function findSubnet(ip: string, subnets: readonly SubnetState[]): string | undefined {
  const bits = ip.includes(':') ? undefined : parseIpv4Number(ip, ip.length);
  if (bits === undefined) return subnets.find(({ cidr }) => isInCidr(ip, cidr))?.subnetId;
  return subnets.find(({ cidr }) => {
    const range = ipv4RangeOf(cidr);
    return range !== undefined && bits >= range.start && bits < range.end;
  })?.subnetId;
}
