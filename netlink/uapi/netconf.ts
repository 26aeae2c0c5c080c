/**
 * Constants of messages about per-interface settings, kernel names kept.
 * @see uapi/linux/netconf.h
 */
export const NETCONFA_IFINDEX = 1;
export const NETCONFA_FORWARDING = 2;
export const NETCONFA_RP_FILTER = 3;
export const NETCONFA_MC_FORWARDING = 4;
export const NETCONFA_PROXY_NEIGH = 5;
export const NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN = 6;
export const NETCONFA_INPUT = 7;
export const NETCONFA_BC_FORWARDING = 8;

export const NETCONFA_IFINDEX_ALL = -1;
export const NETCONFA_IFINDEX_DEFAULT = -2;
