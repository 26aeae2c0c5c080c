import { familyOf, networkPrefix, prefixLength } from '../../dataplane/ip-prefix.ts';
import { PRIVATE_RANGES } from '../../dataplane/masquerade-exempt.ts';

/** Unique local addresses. @see RFC 4193 */
const UNIQUE_LOCAL = 'fc00::/7';

/** Widest network around an address of the node that counts as its VPC. The cloud gives a VPC one /56 of IPv6. */
const AROUND = { 4: 16, 6: 56 } as const;

/** What tells the networks of a VPC. */
type VpcEvidence = {
  /** `--vpc-cidr` */
  readonly configured: readonly string[];
  /** Addresses of type InternalIP of the Node: it has them also while no link does. */
  readonly nodeIps: readonly string[];
  /** Addresses of the primary interface, as `address/length`. */
  readonly ofPrimary: readonly string[];
};

/**
 * Lists the networks that the VPC of a node can have: the private ranges, what is configured, and what is around the
 * node's own addresses. Nothing that an ENI says of itself counts.
 */
export function vpcNetworks({ configured, nodeIps, ofPrimary }: VpcEvidence): readonly string[] {
  // A single IPv4 address on the interface tells no network: it may be a public one. One of IPv6 comes by DHCPv6.
  const connected = ofPrimary.filter((prefix) => familyOf(prefix) === 6 || prefixLength(prefix) < 32);
  const around = [...nodeIps.map((ip) => `${ip}/128`), ...connected].map((prefix) => {
    const [address = ''] = prefix.split('/');
    return networkPrefix(`${address}/${Math.min(prefixLength(prefix), AROUND[familyOf(prefix)])}`);
  });
  return [...new Set([...PRIVATE_RANGES, UNIQUE_LOCAL, ...configured, ...around])];
}
