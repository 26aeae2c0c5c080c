import { isInCidr, parseCidr } from '../../crd/ip-text.ts';
import { formatIp, parseIpv4Number } from '../../runtime/ip-text.ts';
import type { Lease } from '../journal/lease.ts';
import { cidrOfBlockId, countUsableAddresses, POD_CIDR_ID } from '../journal/pod-cidr-block.ts';
import type { Supply, SupplyEni } from '../journal/supply.ts';

/** Returns the id by which pool, leases and cooldowns name a block. */
export function podCidrId(cidr: string): string {
  return `${POD_CIDR_ID}${cidr}`;
}

/** Reports whether an id in a lease or cooldown names a block, and no ENI. */
export function isPodCidrId(eniId: string): boolean {
  return cidrOfBlockId(eniId) !== undefined;
}

/**
 * Builds the supply of GlobalRoute Pods from the blocks of the node: all addresses but network, gateway and broadcast of
 * each IPv4 block. They never change and are never offered for release.
 */
export function podCidrSupply(cidrs: readonly string[]): Supply {
  return { nodeName: '', epoch: 0, warm: { min: 0, max: 0 }, enis: cidrs.flatMap(blockSupply) };
}

/** Returns the blocks that have an address for a Pod. */
export function usableBlocks(cidrs: readonly string[]): readonly string[] {
  return cidrs.filter((cidr) => readBlock(cidr) !== undefined && countUsableAddresses(cidr) > 0);
}

/** Returns the block of an address; undefined when it is in none of them. */
export function blockOfAddress(ip: string, cidrs: readonly string[]): string | undefined {
  return cidrs.find((cidr) => isInCidr(ip, cidr));
}

/** Returns the blocks of live leases that are none of `current`. */
export function formerBlocks(current: readonly string[], leases: Iterable<Lease>): readonly string[] {
  const blocks = [...leases].flatMap(({ block }) => (block === undefined ? [] : [block.cidr]));
  return [...new Set(blocks)].filter((cidr) => !current.includes(cidr)).sort();
}

function blockSupply(cidr: string): readonly SupplyEni[] {
  const first = readBlock(cidr);
  if (first === undefined) return [];
  const addresses = Array.from({ length: countUsableAddresses(cidr) }, (_, index) => ({
    ip: textOf(first + 2 + index),
    family: 4 as const,
    assignmentId: '',
    state: 'assigned' as const,
  }));
  return [{ eniId: podCidrId(cidr), mac: '', primary: [], attached: true, draining: false, addresses }];
}

/** Returns the first address of an IPv4 block as a number. */
function readBlock(cidr: string): number | undefined {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) return undefined;
  const first = parseIpv4Number(parsed.address, parsed.address.length);
  return first < 0 ? undefined : first;
}

function textOf(value: number): string {
  return formatIp(Uint8Array.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255), 0, 4);
}
