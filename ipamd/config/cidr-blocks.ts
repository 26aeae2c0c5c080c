import { parseCidr } from '../../crd/ip-text.ts';
import { ipv4CidrAt, ipv4RangeOf, isWithinAny } from '../../crd/ipv4-range.ts';

/** Which blocks nodes can get. */
export type BlockSettings = {
  /** IPv4 networks that do not overlap, each at least as large as a block; their blocks follow one another. */
  readonly clusterCidrs: readonly string[];
  /** Addresses of Services; '' when they are outside of the cluster CIDRs or not known. */
  readonly serviceCidr: string;
  /** Prefix length of a node's block. */
  readonly maskSize: number;
};

/** The blocks of a cluster by number, from 0; pure and frozen. */
export type CidrBlocks = {
  readonly settings: BlockSettings;
  /** Number of blocks, those of Services included. */
  readonly count: number;
  /** Numbers of the blocks that Services use: no node gets them. */
  readonly ofServices: ReadonlySet<number>;
  /** Returns the network of a block. @throws RangeError when there is none of this number */
  cidrOf(block: number): string;
  /** Lists the blocks that a network overlaps, in order; none for IPv6, malformed texts, and networks outside. */
  overlapping(cidr: string): readonly number[];
  /** Reports whether all addresses of a network are in the cluster CIDRs. */
  contains(cidr: string): boolean;
};

/** Numbers the blocks of a cluster. The caller has checked the settings: {@link findBlockFaults}. */
export function numberBlocks(settings: BlockSettings): CidrBlocks {
  const size = 2 ** (32 - settings.maskSize);
  let count = 0;
  const parts = settings.clusterCidrs.flatMap((cidr) => {
    const range = ipv4RangeOf(cidr);
    if (range === undefined) return [];
    const first = count;
    count += (range.end - range.start) / size;
    return [{ ...range, first }];
  });
  const overlapping = (cidr: string): readonly number[] => {
    const range = ipv4RangeOf(cidr);
    if (range === undefined) return [];
    return parts.flatMap(({ start, end, first }) => {
      const from = Math.floor((Math.max(start, range.start) - start) / size);
      const to = Math.ceil((Math.min(end, range.end) - start) / size);
      return Array.from({ length: Math.max(0, to - from) }, (_, index) => first + from + index);
    });
  };
  return Object.freeze({
    settings,
    count,
    ofServices: new Set(settings.serviceCidr === '' ? [] : overlapping(settings.serviceCidr)),
    cidrOf: (block: number): string => {
      const part = parts.findLast(({ first }) => first <= block);
      if (part === undefined || block < 0 || block >= count) throw new RangeError(`there is no block ${block}`);
      return ipv4CidrAt(part.start + (block - part.first) * size, settings.maskSize);
    },
    overlapping,
    contains: (cidr: string): boolean => {
      const range = ipv4RangeOf(cidr);
      return range !== undefined && isWithinAny(range, parts);
    },
  });
}

/**
 * Returns the prefix length of blocks for so many Pods on a node, rounded up to a power of two. Network, gateway and
 * broadcast addresses are part of the number, as in the product.
 */
export function maskSizeFor(maxPods: number): number {
  return 32 - Math.ceil(Math.log2(maxPods));
}

/** Reports whether two networks of IPv4 share an address; false when either is none. */
export function areOverlapping(one: string, other: string): boolean {
  const [first, second] = [ipv4RangeOf(one), ipv4RangeOf(other)];
  return first !== undefined && second !== undefined && first.start < second.end && second.start < first.end;
}

/** What is wrong with the flags of podCIDRs: the flag, what it has to be, and what it is. */
type BlockFault = { readonly flag: string; readonly expected: string; readonly value: unknown };

/** Most bits between a cluster CIDR and its blocks: 65,536 blocks, as kube-controller-manager allows. */
const MAX_BLOCK_BITS = 16;

/**
 * Finds every combination of cluster CIDRs, at least one, Service range and mask from which no blocks can be given. The chart's
 * helper `tke-eni.broken-blocks` finds the same.
 */
export function findBlockFaults(settings: BlockSettings): readonly BlockFault[] {
  const { clusterCidrs, serviceCidr, maskSize } = settings;
  const faults = [
    ...clusterCidrs.flatMap((cidr, at) => {
      const other = clusterCidrs.find((one, index) => index < at && areOverlapping(one, cidr));
      if (other === undefined) return [];
      return [{ flag: '--cluster-cidr', expected: `networks that do not overlap, as ${other} does`, value: cidr }];
    }),
    ...clusterCidrs.flatMap((cidr) => faultOfMask(cidr, maskSize)),
  ];
  if (faults.length > 0) return faults;
  const blocks = numberBlocks(settings);
  if (blocks.ofServices.size < blocks.count) return [];
  const expected = 'a network that leaves blocks of --cluster-cidr for nodes';
  return [{ flag: '--service-cluster-ip-range', expected, value: serviceCidr }];
}

function faultOfMask(cidr: string, maskSize: number): readonly BlockFault[] {
  const length = parseCidr(cidr)?.prefixLength ?? 0;
  const flag = '--node-cidr-mask-size';
  if (maskSize < length) {
    return [{ flag, expected: `at least ${length}, as a block must fit into ${cidr}`, value: maskSize }];
  }
  if (maskSize - length <= MAX_BLOCK_BITS) return [];
  const expected = `at most ${length + MAX_BLOCK_BITS}, as ${cidr} would have more than ${2 ** MAX_BLOCK_BITS} blocks`;
  return [{ flag, expected, value: maskSize }];
}
