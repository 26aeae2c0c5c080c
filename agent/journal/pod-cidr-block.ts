import { prefixLength } from '../../dataplane/ip-prefix.ts';

/** In the pool, leases and cooldowns a block of addresses takes the place of an ENI; its id begins with this. */
export const POD_CIDR_ID = 'pod-cidr:';

/** Returns the block, 'addr/len', that an id names; undefined for that of an ENI. */
export function cidrOfBlockId(eniId: string): string | undefined {
  return eniId.startsWith(POD_CIDR_ID) ? eniId.slice(POD_CIDR_ID.length) : undefined;
}

/** Returns the number of addresses that Pods can have of an IPv4 block: all but network, gateway and broadcast address. */
export function countUsableAddresses(cidr: string): number {
  return cidr.includes(':') ? 0 : Math.min(MAX_ADDRESSES, Math.max(0, 2 ** (32 - prefixLength(cidr)) - RESERVED));
}

/** Most addresses of a block that are used; the kubelet runs far fewer Pods on a node. */
const MAX_ADDRESSES = 2_048;

/** Addresses of a block that no Pod gets: that of the network, the gateway's, and the broadcast address. */
const RESERVED = 3;
