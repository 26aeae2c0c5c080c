/** Returns the destinations to which GlobalRoute Pods keep their addresses: the private ranges and those of the VPC. */
export function masqueradeExempt(vpcCidrs: readonly string[]): readonly string[] {
  return [...PRIVATE_RANGES, ...vpcCidrs];
}

/**
 * Private ranges of IPv4, in which VPC, other nodes' Pods and Services are. They are never masqueraded, as with ip-masq-agent
 * without a configuration.
 * @see RFC 1918, RFC 6598, RFC 3927
 */
export const PRIVATE_RANGES = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
] as const;
