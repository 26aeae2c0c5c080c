import { formatIp, parseIp } from '../runtime/ip-text.ts';
import { networkPrefix, prefixLength } from './ip-prefix.ts';
import type { BridgePodNetwork, PodCidr } from './network.ts';

/** Describes a block of GlobalRoute Pods by its CIDR, whose host bits are ignored. */
export function podCidrOf(cidr: string, isCurrent = true): PodCidr {
  const network = networkPrefix(cidr);
  return { cidr: network, gateway: firstAddress(network), isCurrent };
}

/** Returns what a Pod of the block needs of it. */
export function blockOf({ cidr, gateway }: Pick<PodCidr, 'cidr' | 'gateway'>): BridgePodNetwork['block'] {
  return { gateway, prefixLength: prefixLength(cidr) };
}

/** Returns the bridge's address in a block, as `address/length`. */
export function gatewayPrefix({ gateway, prefixLength }: BridgePodNetwork['block']): string {
  return `${gateway}/${prefixLength}`;
}

/** Reports whether `address/length` is the first address of its block, as the bridge's own addresses are. */
export function isGatewayPrefix(prefix: string): boolean {
  return prefix === gatewayPrefix(blockOf(podCidrOf(prefix)));
}

function firstAddress(network: string): string {
  const [address = ''] = network.split('/');
  const bytes = parseIp(address);
  if (bytes === undefined) return address;
  const first = bytes.with(-1, (bytes.at(-1) ?? 0) + 1);
  return formatIp(first, 0, first.length);
}
