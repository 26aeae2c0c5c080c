/** Limit of EIPs of an instance, by its cores. */
const BY_CORES: readonly { readonly upToCores: number; readonly eips: number }[] = [
  { upToCores: 5, eips: 2 },
  { upToCores: 11, eips: 3 },
  { upToCores: 17, eips: 4 },
  { upToCores: 23, eips: 5 },
  { upToCores: 29, eips: 6 },
  { upToCores: 35, eips: 7 },
  { upToCores: 41, eips: 8 },
  { upToCores: 47, eips: 9 },
  { upToCores: Number.POSITIVE_INFINITY, eips: 10 },
];

/** EIPs for the node itself: the product reserves one. */
const RESERVED_FOR_NODE = 1;

/**
 * Looks up how many EIPs Pods of an instance can have.
 * @see https://cloud.tencent.com/document/product/1199/41648 (limits of EIPs on an instance)
 */
export function findMaxEips(cores: number): number {
  const line = BY_CORES.find((candidate) => cores <= candidate.upToCores);
  return Math.max(0, (line?.eips ?? 0) - RESERVED_FOR_NODE);
}
