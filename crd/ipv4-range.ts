import { ipv4Number, parseCidr } from './ip-text.ts';

/** An IPv4 network as numbers, for comparisons of thousands of them; `end` is not part of it. */
export type Ipv4Range = {
  readonly start: number;
  readonly end: number;
  /** The network in its one form. */
  readonly cidr: string;
};

/** Reads an IPv4 network; undefined when it is none, or has host bits set. */
export function ipv4RangeOf(text: string): Ipv4Range | undefined {
  const parsed = parseCidr(text);
  if (parsed?.family !== 4) return undefined;
  const start = ipv4Number(parsed.address);
  const cidr = `${parsed.address}/${parsed.prefixLength}`;
  return { start, end: start + 2 ** (32 - parsed.prefixLength), cidr };
}

/** Tells whether a network is within one of the others. */
export function isWithinAny({ start, end }: Ipv4Range, others: readonly Ipv4Range[]): boolean {
  return others.some((other) => other.start <= start && end <= other.end);
}
