import { i32 } from './codec.ts';
import { attribute, headerU8, requiredAttribute } from './field.ts';
import { type MessageOf, messageCodec } from './message-codec.ts';
import {
  NETCONFA_BC_FORWARDING,
  NETCONFA_FORWARDING,
  NETCONFA_IFINDEX,
  NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN,
  NETCONFA_INPUT,
  NETCONFA_MC_FORWARDING,
  NETCONFA_PROXY_NEIGH,
  NETCONFA_RP_FILTER,
} from './uapi/netconf.ts';

/**
 * struct netconfmsg { u8 ncm_family; }, padded to 4 bytes. A notification has the setting that changed, one of a new link all.
 * @see uapi/linux/netconf.h, ip-netconf(8)
 */
export const NETCONF = messageCodec('netconf', 4, {
  family: headerU8(0),
  /** Index of the link, or NETCONFA_IFINDEX_ALL or NETCONFA_IFINDEX_DEFAULT. */
  ifindex: requiredAttribute(NETCONFA_IFINDEX, i32, 0),
  forwarding: attribute(NETCONFA_FORWARDING, i32),
  rpFilter: attribute(NETCONFA_RP_FILTER, i32),
  mcForwarding: attribute(NETCONFA_MC_FORWARDING, i32),
  proxyNeigh: attribute(NETCONFA_PROXY_NEIGH, i32),
  ignoreRoutesWithLinkdown: attribute(NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, i32),
  input: attribute(NETCONFA_INPUT, i32),
  bcForwarding: attribute(NETCONFA_BC_FORWARDING, i32),
});

/** Settings of one link, or of all, in one family, as the kernel reports them. */
export type NetconfMessage = MessageOf<typeof NETCONF>;
