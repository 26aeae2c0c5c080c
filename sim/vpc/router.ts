import type { NetnsView } from '../support/netns.ts';
import { type Nic, portMac, routedIps } from './nic.ts';
import { hostPrefix } from './subnet.ts';

/** Every port of a subnet answers for this link-local gateway too, as a cloud's router advertisement would name it. */
const LINK_LOCAL_GATEWAY = 'fe80::1';

/**
 * TTL of every packet that has passed the router. Hosts send with 64, so one that arrives with less than this, and not
 * much less, has passed before. A reply begins with 64 again.
 */
const PASSED_TTL = 40;
/** Lowest TTL that still counts as of a packet that has passed: tools that send with a TTL of a few hops stay below. */
const LEAST_PASSED_TTL = 20;

/**
 * The router's packet filter. It drops, and counts by port, what a cloud's switch drops: a source MAC that is not the
 * port's NIC, and a source address that is not routed to the port. (IPv4 has strict rp_filter as well; IPv6 has none.)
 * What passes is counted per way through the router: that is the packet log. (For IPv6 by interface index: two names
 * and two addresses are more than nftables' registers hold.) A packet that passes a second time, unchanged but for its
 * TTL, is counted too: its addresses and ports (of ICMP: type and checksum) are those of a packet that passed for the
 * first time a moment ago. One whose addresses a node has translated meanwhile is another packet.
 */
export const ROUTER_RULESET = `
table inet vpc {
  set ports { type ifname . ether_addr
  }
  set dropped_mac { type ifname . ether_addr
    flags dynamic
    size 65535
    counter
  }
  set dropped_v4 { type ifname . ipv4_addr . ipv4_addr
    flags dynamic
    size 65535
    counter
  }
  set dropped_v6 { type ifname . ipv6_addr . ipv6_addr
    flags dynamic
    size 65535
    counter
  }
  set passed_v4 { type ifname . ifname . ipv4_addr . ipv4_addr . inet_proto
    flags dynamic
    size 65535
    counter
  }
  set passed_v6 { type iface_index . iface_index . ipv6_addr . ipv6_addr . inet_proto
    flags dynamic
    size 65535
    counter
  }
  set fresh_v4 { type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service
    flags dynamic,timeout
    timeout 5s
    size 65535
  }
  set fresh_v6 { type ipv6_addr . ipv6_addr . inet_proto . inet_service . inet_service
    flags dynamic,timeout
    timeout 5s
    size 65535
  }
  set repeated_v4 { type ifname . ipv4_addr . ipv4_addr . inet_proto
    flags dynamic
    size 65535
    counter
  }
  set repeated_v6 { type ifname . ipv6_addr . ipv6_addr . inet_proto
    flags dynamic
    size 65535
    counter
  }
  chain prerouting { type filter hook prerouting priority raw; policy accept;
    iifname "p*" iifname . ether saddr != @ports add @dropped_mac { iifname . ether saddr } drop
    meta nfproto ipv4 fib saddr . iif oif missing add @dropped_v4 { iifname . ip saddr . ip daddr } drop
    ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing add @dropped_v6 { iifname . ip6 saddr . ip6 daddr } drop
    ip ttl ${LEAST_PASSED_TTL}-${PASSED_TTL} ${tupleOf('ip')} @fresh_v4 add @repeated_v4 { iifname . ip saddr . ip daddr . meta l4proto }
    ip6 hoplimit ${LEAST_PASSED_TTL}-${PASSED_TTL} ${tupleOf('ip6')} @fresh_v6 add @repeated_v6 { iifname . ip6 saddr . ip6 daddr . meta l4proto }
  }
  chain forward { type filter hook forward priority filter; policy accept;
    meta nfproto ipv4 add @passed_v4 { iifname . oifname . ip saddr . ip daddr . meta l4proto }
    meta nfproto ipv6 add @passed_v6 { iif . oif . ip6 saddr . ip6 daddr . meta l4proto }
    ip ttl > ${PASSED_TTL} update @fresh_v4 { ${tupleOf('ip')} }
    ip6 hoplimit > ${PASSED_TTL} update @fresh_v6 { ${tupleOf('ip6')} }
    ip ttl > ${PASSED_TTL} ip ttl set ${PASSED_TTL}
    ip6 hoplimit > ${PASSED_TTL} ip6 hoplimit set ${PASSED_TTL}
  }
}
table arp vpc {
  set ports { type ifname . ether_addr
  }
  set subnets { type ifname . ipv4_addr
    flags interval
  }
  chain input { type filter hook input priority filter; policy accept;
    iifname "p*" iifname . arp saddr ether != @ports drop
    iifname "p*" iifname . arp daddr ip != @subnets drop
  }
}
`;

/** nft expression of what two packets of one flow have in common; of ICMP, of what tells two packets apart. */
function tupleOf(layer: 'ip' | 'ip6'): string {
  return `${layer} saddr . ${layer} daddr . meta l4proto . th sport . th dport`;
}

/** Sysctls of the router; the strict ones are inherited by every port made later. */
export const ROUTER_SYSCTLS = {
  'net/ipv4/ip_forward': 1,
  'net/ipv4/conf/all/rp_filter': 0,
  'net/ipv4/conf/default/rp_filter': 1,
  'net/ipv4/conf/default/arp_ignore': 1,
  'net/ipv4/conf/default/arp_filter': 1,
  // A node asks on its own segment for its neighbours in the subnet; the router carries those packets too.
  'net/ipv4/conf/default/proxy_arp': 1,
  'net/ipv4/conf/all/send_redirects': 0,
  'net/ipv4/conf/default/send_redirects': 0,
  'net/ipv6/conf/all/forwarding': 1,
  'net/ipv6/conf/default/accept_dad': 0,
  'net/ipv6/conf/default/addr_gen_mode': 1,
} as const;

/** `ip` lines, run in any namespace, that plug a NIC in: a veth between the router and the node. */
export function plugLines(nic: Nic, router: NetnsView, node: NetnsView, serial: number): readonly string[] {
  // eth%d: the kernel takes the lowest free name, as it does for a hot-plugged NIC.
  const peer = nic.isPrimary ? 'eth0' : 'eth%d';
  return [
    `link add name ${nic.port} netns ${router.name} address ${portMac(serial)} mtu ${nic.mtu} type veth ` +
      `peer name ${peer} netns ${node.name} address ${nic.mac} mtu ${nic.mtu}`,
  ];
}

/** `ip` lines, run in the router, that make a new port answer for its gateways and lead the NIC's addresses to it. */
export function portLines(nic: Nic): readonly string[] {
  const { subnet, port } = nic;
  const gateways =
    subnet.gatewayV6 === undefined
      ? [`address add ${subnet.gateway}/32 dev ${port}`]
      : [
          `address add ${subnet.gateway}/32 dev ${port}`,
          `address add ${subnet.gatewayV6}/128 dev ${port} nodad`,
          `address add ${LINK_LOCAL_GATEWAY}/64 dev ${port} nodad`,
        ];
  return [
    ...gateways,
    // Else the kernel lets a proxied answer wait for up to 0.8 s.
    `ntable change name arp_cache dev ${port} proxy_delay 0`,
    `link set ${port} up`,
    ...routedIps(nic).flatMap((ip) => addIpLines(nic, ip)),
  ];
}

/** `ip` lines that lead an address to a NIC's port; idempotent. */
export function addIpLines(nic: Nic, ip: string): readonly string[] {
  return [
    `route replace ${hostPrefix(ip)} dev ${nic.port}`,
    `neigh replace ${ip} lladdr ${nic.mac} dev ${nic.port} nud permanent`,
  ];
}

/** `ip` lines that end leading an address to a NIC's port. */
export function removeIpLines(nic: Nic, ip: string): readonly string[] {
  return [`route delete ${hostPrefix(ip)} dev ${nic.port}`, `neigh delete ${ip} dev ${nic.port}`];
}

/** nft script that lets one MAC, and ARP for one subnet, through a port. */
export function portElements(nic: Nic, verb: 'add' | 'delete'): string {
  const mac = `{ "${nic.port}" . ${nic.mac} }`;
  return (
    `${verb} element inet vpc ports ${mac}\n${verb} element arp vpc ports ${mac}\n` +
    `${verb} element arp vpc subnets { "${nic.port}" . ${nic.subnet.cidr} }\n`
  );
}
