import { Address4 } from 'ip-address';
import { parseCidr } from './ip-text.ts';

/** An IPv4 network as numbers, for comparisons of thousands of them; `end` is not part of it. */
export type Ipv4Range = {
  readonly start: number;
  readonly end: number;
  /** The network in its one form. */
  readonly cidr: string;
};

/** Networks that were read before: the library takes 10 µs for one, and each look compares those of all nodes and subnets. */
const READ = new Map<string, Ipv4Range | undefined>();
const MAX_READ = 16_384;

/** Reads an IPv4 network; undefined when it is none, or has host bits set. `parseCidr` alone decides that: the library takes more. */
export function ipv4RangeOf(text: string): Ipv4Range | undefined {
  if (READ.has(text)) return READ.get(text);
  if (READ.size >= MAX_READ) READ.clear();
  const parsed = parseCidr(text);
  const range = parsed?.family === 4 ? ipv4NetworkOf(parsed.address, parsed.prefixLength) : undefined;
  READ.set(text, range);
  return range;
}

/** Returns the network of an IPv4 address, as `canonicalIp` returns one; its host bits are cleared. */
export function ipv4NetworkOf(address: string, prefixLength: number): Ipv4Range {
  const network = new Address4(`${address}/${prefixLength}`);
  const start = network.startAddress();
  const end = Number(network.endAddress().bigInt()) + 1;
  return { start: Number(start.bigInt()), end, cidr: `${start.correctForm()}/${prefixLength}` };
}

/** Writes the network that begins at a number from 0 to 2^32 - 1. */
export function ipv4CidrAt(start: number, prefixLength: number): string {
  return `${Address4.fromBigInt(BigInt(start)).correctForm()}/${prefixLength}`;
}

/** Reports whether a network is within one of the others. */
export function isWithinAny({ start, end }: Ipv4Range, others: readonly Ipv4Range[]): boolean {
  return others.some((other) => other.start <= start && end <= other.end);
}
