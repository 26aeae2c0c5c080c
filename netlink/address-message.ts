import { ifName, ipAddress, u8, u32, u32Struct } from './codec.ts';
import { attribute, headerU8, headerU32, outgrownU8, requiredAttribute } from './field.ts';
import { type MessageOf, messageCodec } from './message-codec.ts';
import {
  IFA_ADDRESS,
  IFA_BROADCAST,
  IFA_CACHEINFO,
  IFA_FLAGS,
  IFA_LABEL,
  IFA_LOCAL,
  IFA_PROTO,
  IFA_RT_PRIORITY,
} from './uapi/if-addr.ts';

/**
 * struct ifaddrmsg { u8 family; u8 prefixlen; u8 flags; u8 scope; u32 index; }
 * @see uapi/linux/if_addr.h
 */
export const ADDRESS = messageCodec('address', 8, {
  family: headerU8(0),
  prefixlen: headerU8(1),
  scope: headerU8(3),
  ifindex: headerU32(4),
  /** Own address; on a point-to-point link `address` is that of the peer. */
  local: attribute(IFA_LOCAL, ipAddress),
  address: requiredAttribute(IFA_ADDRESS, ipAddress, ''),
  broadcast: attribute(IFA_BROADCAST, ipAddress),
  label: attribute(IFA_LABEL, ifName),
  /** IFA_F_*. */
  flags: outgrownU8(IFA_FLAGS, 2),
  /** Metric of the prefix route. */
  priority: attribute(IFA_RT_PRIORITY, u32),
  protocol: attribute(IFA_PROTO, u8),
  /** struct ifa_cacheinfo: seconds left, 2^32-1 forever; times in hundredths of a second since boot. */
  cacheinfo: attribute(IFA_CACHEINFO, u32Struct('preferred', 'valid', 'created', 'updated')),
});

/** Address of an interface, as the kernel reports it. */
export type AddressMessage = MessageOf<typeof ADDRESS>;

/** Returns the interface's own address; `address` is that of the other end of a point-to-point link. */
export function ownAddress({ local, address }: Pick<AddressMessage, 'local' | 'address'>): string {
  return local ?? address;
}

/** Returns the interface's own address with the length of its network: '10.0.0.5/24'. */
export function ownPrefix(message: Pick<AddressMessage, 'local' | 'address' | 'prefixlen'>): string {
  return `${ownAddress(message)}/${message.prefixlen}`;
}

/** Address to add, replace or delete. @see ip-address(8) */
export type AddressSpec = {
  readonly ifindex: number;
  /** '10.0.0.5' or 'fd00::1', without a length. */
  readonly address: string;
  readonly prefixlen: number;
  /** AF_INET or AF_INET6; follows from the address when left out. */
  readonly family?: number;
  /** Own address of a point-to-point link whose other end is `address`. */
  readonly local?: string;
  /** RT_SCOPE_*; universe when left out, host for 127.0.0.0/8, as iproute2 does. */
  readonly scope?: number;
  /** IFA_F_*, such as IFA_F_NODAD or IFA_F_NOPREFIXROUTE. */
  readonly flags?: number;
  readonly label?: string;
  readonly broadcast?: string;
  readonly priority?: number;
  readonly protocol?: number;
  /** Lifetimes in seconds, 2^32-1 forever; the kernel sets the times. Forever when left out. */
  readonly cacheinfo?: NonNullable<AddressMessage['cacheinfo']>;
};
