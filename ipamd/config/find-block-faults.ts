import { parseCidr } from '../../crd/ip-text.ts';
import { areOverlapping, type BlockSettings, numberBlocks } from './cidr-blocks.ts';

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
