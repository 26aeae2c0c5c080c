import {
  IFA_F_DEPRECATED,
  IFA_F_HOMEADDRESS,
  IFA_F_MANAGETEMPADDR,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
} from '../netlink/uapi/if-addr.ts';
import type { AddressState } from './desired.ts';
import { familyOf, isLinkLocal } from './ip-prefix.ts';

/**
 * Reports whether `before` has to be deleted and added as `address`, because no request changes what is different. Routes by it
 * or with it as their source, and the neighbours of its link, go with it.
 * @see net/ipv4/devinet.c inet_rtm_newaddr, net/ipv6/addrconf.c inet6_addr_modify
 */
export function isMadeAgain(address: AddressState, before: AddressState): boolean {
  const { address: peer, scope, broadcast, flags } = before.more ?? {};
  const family = familyOf(address.prefix);
  const changed = flags === undefined ? 0 : flags ^ addressFlags(address.prefix);
  const isOther = before.prefix !== address.prefix || [peer, scope, broadcast].some((one) => one !== undefined);
  return isOther || (changed & ~CHANGEABLE[family]) !== 0;
}

/**
 * Returns the flags of a planned address. One of IPv6 is usable at once, and makes no route of its own in main, which a
 * link-local one does need.
 */
export function addressFlags(prefix: string): number {
  if (familyOf(prefix) === 4) return 0;
  return isLinkLocal(prefix) ? IFA_F_NODAD : IFA_F_NODAD | IFA_F_NOPREFIXROUTE;
}

/** Flags that the kernel changes of an address that is there. */
const CHANGEABLE = {
  4: IFA_F_DEPRECATED,
  6: IFA_F_DEPRECATED | IFA_F_NODAD | IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE,
} as const;
