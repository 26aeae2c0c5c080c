import type { Family } from '../../dataplane/ip-prefix.ts';
import type { NodeNetwork } from '../../dataplane/network.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import type { AddressMessage } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';

/** The part of the node's own network that the plan needs. */
export type PrimaryInterface = NodeNetwork['primary'];

/** Objects of the host's namespace. */
export type HostView = {
  readonly links: readonly LinkMessage[];
  readonly addresses: readonly AddressMessage[];
  /** Routes of the main table, both families. */
  readonly mainRoutes: readonly RouteMessage[];
};

/** The part of the node's plan that is configured and not observed. */
export type NodeNetworkSettings = Pick<
  NodeNetwork,
  'eniMarkMask' | 'rpFilterMode' | 'egress' | 'nodePort' | 'fastPath'
> & {
  readonly podCidrs: readonly string[];
  readonly vpcCidrs: readonly string[];
  readonly nftables: boolean;
  readonly serviceCidrs: readonly string[];
};

/** Joins what is configured with what was observed. */
export function nodeNetworkOf(
  settings: NodeNetworkSettings,
  primary: PrimaryInterface,
  families: readonly Family[],
  subnetCidrs: readonly string[],
): NodeNetwork {
  return {
    ...settings,
    podCidrs: settings.podCidrs.map((cidr) => podCidrOf(cidr)),
    ruleMode: 'compact',
    primary,
    families: families.length === 0 ? [4] : families,
    // If the VPC's own ranges are not configured, the subnets of its ENIs are what is surely inside it.
    vpcCidrs: settings.vpcCidrs.length > 0 ? settings.vpcCidrs : [...new Set(subnetCidrs)],
  };
}
