import { type AddressMessage, ownAddress } from '../../../netlink/address-message.ts';
import {
  IFA_F_DADFAILED,
  IFA_F_DEPRECATED,
  IFA_F_HOMEADDRESS,
  IFA_F_MANAGETEMPADDR,
  IFA_F_MCAUTOJOIN,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
  IFA_F_OPTIMISTIC,
  IFA_F_PERMANENT,
  IFA_F_SECONDARY,
  IFA_F_STABLE_PRIVACY,
  IFA_F_TENTATIVE,
  IFAPROT_KERNEL_LL,
  IFAPROT_KERNEL_LO,
  IFAPROT_KERNEL_RA,
} from '../../../netlink/uapi/if-addr.ts';
import { AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import type { IpNames, IpObject } from './ip-names.ts';
import { familyName } from './render-route-json.ts';

/** Lifetime without end, 2^32-1 seconds. */
const FOREVER = 0xffffffff;

/** Renders an address as an element of "addr_info" of `ip -j address`. @see ip-address(8), iproute2 ip/ipaddress.c */
export function renderAddressJson(address: AddressMessage, names: IpNames): IpObject {
  const { flags, family, cacheinfo } = address;
  const local = ownAddress(address);
  return {
    family: familyName(family),
    local,
    ...(address.address === local || address.address === '' ? {} : { address: address.address }),
    prefixlen: address.prefixlen,
    ...(address.priority === undefined ? {} : { metric: address.priority }),
    ...(address.broadcast === undefined ? {} : { broadcast: address.broadcast }),
    scope: names.scope(address.scope),
    ...addressFlags(flags, family),
    ...(address.protocol === undefined ? {} : { protocol: PROTOCOLS[address.protocol] ?? hex(address.protocol) }),
    ...(address.label === undefined ? {} : { label: address.label }),
    valid_life_time: cacheinfo?.valid ?? FOREVER,
    preferred_life_time: cacheinfo?.preferred ?? FOREVER,
  };
}

/** IFAPROT_*: the part of the kernel that created the address. */
const PROTOCOLS: Readonly<Record<number, string>> = {
  [IFAPROT_KERNEL_LO]: 'kernel_lo',
  [IFAPROT_KERNEL_RA]: 'kernel_ra',
  [IFAPROT_KERNEL_LL]: 'kernel_ll',
};

/** Flags in the order of iproute2. */
const FLAGS: readonly (readonly [number, string])[] = [
  [IFA_F_DEPRECATED, 'deprecated'],
  [IFA_F_HOMEADDRESS, 'home'],
  [IFA_F_TENTATIVE, 'tentative'],
  [IFA_F_DADFAILED, 'dadfailed'],
  [IFA_F_MANAGETEMPADDR, 'mngtmpaddr'],
  [IFA_F_NODAD, 'nodad'],
  [IFA_F_OPTIMISTIC, 'optimistic'],
  [IFA_F_NOPREFIXROUTE, 'noprefixroute'],
  [IFA_F_MCAUTOJOIN, 'autojoin'],
  [IFA_F_STABLE_PRIVACY, 'stable-privacy'],
];

/**
 * Names the flags of an address as `ip` does. The kernel has one bit for "secondary" (IPv4) and "temporary" (IPv6); it
 * reports "permanent", where `ip` prints "dynamic" for the opposite.
 */
function addressFlags(flags: number, family: number): IpObject {
  const names = [
    ...((flags & IFA_F_SECONDARY) === 0 ? [] : [family === AF_INET6 ? 'temporary' : 'secondary']),
    ...FLAGS.flatMap(([bit, name]) => ((flags & bit) === 0 ? [] : [name])),
    ...((flags & IFA_F_PERMANENT) === 0 ? ['dynamic'] : []),
  ];
  return Object.fromEntries(names.map((name) => [name, true]));
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(2, '0')}`;
}
