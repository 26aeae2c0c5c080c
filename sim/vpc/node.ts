import type { Nic } from './nic.ts';

/** Sysctls of a freshly booted node, before any agent came. */
export const NODE_SYSCTLS = {
  'net/ipv4/ip_forward': 0,
  'net/ipv4/conf/all/rp_filter': 0,
  'net/ipv4/conf/default/rp_filter': 1,
  'net/ipv6/conf/default/accept_dad': 0,
  'net/ipv6/conf/all/forwarding': 0,
} as const;

/** `ip` lines, run in the node, that a node's own network set-up would do for its primary NIC. */
export function primaryLines(nic: Nic): readonly string[] {
  const { subnet } = nic;
  const v6 =
    nic.primaryIpv6 === undefined
      ? []
      : [
          // A cloud hands out single IPv6 addresses; the gateway is the only neighbour.
          `address add ${nic.primaryIpv6}/128 dev eth0 nodad`,
          `route add ${subnet.gatewayV6}/128 dev eth0`,
          `route add default via ${subnet.gatewayV6} dev eth0`,
        ];
  return [
    'link set lo up',
    `address add ${nic.primaryIp}/${subnet.prefixLength(4)} dev eth0`,
    'link set eth0 up',
    `route add default via ${subnet.gateway} dev eth0`,
    ...v6,
  ];
}
