/** How many ENIs and addresses an instance may have. */
export type EniLimits = {
  /** ENIs besides the primary one. */
  readonly secondaryEnis: number;
  /**
   * Places of the extension type, apart from `secondaryEnis`: for exclusive ENIs. 0 where the cloud names none.
   * @see DescribeNetworkInterfaceLimit ExtendEniQuantity
   */
  readonly extensionEnis: number;
  /** Addresses of one ENI besides its primary one. */
  readonly secondaryIpsPerEni: number;
  /** The source of the limits: the cloud, or the built-in table when the cloud returned none. */
  readonly source: 'api' | 'table';
};

const BY_CORES: readonly { readonly upToCores: number; readonly enis: number; readonly ips: number }[] = [
  { upToCores: 1, enis: 1, ips: 5 },
  { upToCores: 7, enis: 3, ips: 9 },
  { upToCores: 11, enis: 5, ips: 19 },
  { upToCores: Number.POSITIVE_INFINITY, enis: 7, ips: 29 },
];

/**
 * Looks up the limits of an instance by its number of cores: the fallback when the API does not know the instance. A
 * number between two lines of the product's table counts as the smaller one.
 * @see https://cloud.tencent.com/document/product/457/50357 (limits on the number of Pods in VPC-CNI)
 */
export function eniLimitsByCores(cores: number): EniLimits {
  const line = BY_CORES.find((candidate) => cores <= candidate.upToCores);
  return { secondaryEnis: line?.enis ?? 1, extensionEnis: 0, secondaryIpsPerEni: line?.ips ?? 5, source: 'table' };
}
