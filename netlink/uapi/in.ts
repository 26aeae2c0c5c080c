/**
 * Numbers of IP protocols, kernel names kept.
 * @see uapi/linux/in.h, uapi/linux/in6.h
 */
export const IPPROTO_ICMP = 1;
export const IPPROTO_TCP = 6;
export const IPPROTO_UDP = 17;
export const IPPROTO_ICMPV6 = 58;
