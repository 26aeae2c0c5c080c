import type { Check } from './check.ts';
import { AGENT_CHECK, CNI_CHECK, SERVICE_CIDRS_CHECK, STATE_CHECK } from './check-agent.ts';
import { CILIUM_CHAIN_CHECK } from './check-cilium-chain.ts';
import { DIFFERENCES_CHECK } from './check-differences.ts';
import { DEFAULT_ROUTES_CHECK, ENIS_CHECK } from './check-enis.ts';
import { FAST_PATH_CHECK } from './check-fast-path.ts';
import { FORWARD_CHECK, FORWARDING_CHECK } from './check-forward.ts';
import { BRIDGE_PORTS_CHECK, MASQUERADE_CHECK, POD_CIDR_CHECK } from './check-gr-pods.ts';
import { IPTABLES_CHECK } from './check-iptables.ts';
import { BRIDGE_CHECK, CONNTRACK_CHECK, INOTIFY_CHECK, KERNEL_CHECK, NEIGH_CHECK } from './check-kernel.ts';
import { KUBE_PROXY_CHECK } from './check-kube-proxy.ts';
import { MARKS_CHECK } from './check-marks.ts';
import { MTU_CHECK } from './check-mtu.ts';
import { FIXED_NEIGHBOURS_CHECK } from './check-neighbours.ts';
import { NETWORK_MANAGER_CHECK } from './check-network-manager.ts';
import { CLOUD_INIT_CHECK, DHCP_CHECK, NETWORKD_CHECK } from './check-network-services.ts';
import { NFT_CHECK } from './check-nft.ts';
import { MAC_CHECK, POD_LINKS_CHECK } from './check-pod-links.ts';
import { RP_FILTER_CHECK } from './check-rp-filter.ts';
import { RULES_CHECK, TABLES_CHECK } from './check-rules.ts';
import { TRAFFIC_CHECK } from './check-traffic.ts';

/**
 * Every check of the doctor, in the order of the output: first our own components, then the node, then its services.
 */
export const CHECKS: readonly Check[] = [
  AGENT_CHECK,
  STATE_CHECK,
  CNI_CHECK,
  CILIUM_CHAIN_CHECK,
  ENIS_CHECK,
  DEFAULT_ROUTES_CHECK,
  POD_LINKS_CHECK,
  SERVICE_CIDRS_CHECK,
  MAC_CHECK,
  RULES_CHECK,
  TABLES_CHECK,
  NFT_CHECK,
  MARKS_CHECK,
  MTU_CHECK,
  FORWARDING_CHECK,
  RP_FILTER_CHECK,
  FORWARD_CHECK,
  TRAFFIC_CHECK,
  FAST_PATH_CHECK,
  FIXED_NEIGHBOURS_CHECK,
  IPTABLES_CHECK,
  KUBE_PROXY_CHECK,
  BRIDGE_CHECK,
  POD_CIDR_CHECK,
  BRIDGE_PORTS_CHECK,
  MASQUERADE_CHECK,
  NETWORKD_CHECK,
  NETWORK_MANAGER_CHECK,
  CLOUD_INIT_CHECK,
  DHCP_CHECK,
  KERNEL_CHECK,
  CONNTRACK_CHECK,
  NEIGH_CHECK,
  INOTIFY_CHECK,
  DIFFERENCES_CHECK,
];
