import type { Check } from './check.ts';
import { AGENT_CHECK, CNI_CHECK, STATE_CHECK } from './find-agent.ts';
import { CLOUD_INIT_CHECK } from './find-cloud-init.ts';
import { DIFFERENCES_CHECK } from './find-differences.ts';
import { DEFAULT_ROUTES_CHECK, ENIS_CHECK } from './find-enis.ts';
import { FORWARD_CHECK } from './find-forward.ts';
import { FORWARDING_CHECK } from './find-forwarding.ts';
import { IPTABLES_CHECK, KUBE_PROXY_CHECK } from './find-iptables.ts';
import { BRIDGE_CHECK, CONNTRACK_CHECK, INOTIFY_CHECK, KERNEL_CHECK, NEIGH_CHECK } from './find-kernel.ts';
import { MARKS_CHECK } from './find-marks.ts';
import { MTU_CHECK } from './find-mtu.ts';
import { NETWORK_MANAGER_CHECK } from './find-network-manager.ts';
import { DHCP_CHECK, NETWORKD_CHECK } from './find-network-services.ts';
import { NFT_CHECK } from './find-nft.ts';
import { MAC_CHECK, POD_LINKS_CHECK } from './find-pod-links.ts';
import { RP_FILTER_CHECK } from './find-rp-filter.ts';
import { RULES_CHECK, TABLES_CHECK } from './find-rules.ts';

/**
 * Every check of the doctor, in the order of the output: first our own components, then the node, then its services.
 */
export const CHECKS: readonly Check[] = [
  AGENT_CHECK,
  STATE_CHECK,
  CNI_CHECK,
  ENIS_CHECK,
  DEFAULT_ROUTES_CHECK,
  POD_LINKS_CHECK,
  MAC_CHECK,
  RULES_CHECK,
  TABLES_CHECK,
  NFT_CHECK,
  MARKS_CHECK,
  MTU_CHECK,
  FORWARDING_CHECK,
  RP_FILTER_CHECK,
  FORWARD_CHECK,
  IPTABLES_CHECK,
  KUBE_PROXY_CHECK,
  BRIDGE_CHECK,
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
