import { networkPrefix } from '../../dataplane/ip-prefix.ts';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { GrWiring, NodeNetwork } from '../../dataplane/network.ts';
import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { ownPrefix } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import type { NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { prefixContains } from '../node/prefix-contains.ts';

/** The block of a GlobalRoute Pod, and how the Pod was wired. */
export type GrView = {
  /** Of the block, with host bits zero. */
  readonly cidr: string;
  /** The first address of the block: the Pod's gateway where it is on the bridge. */
  readonly gateway: string;
  readonly wiring: GrWiring;
  /** True for a block that was the node's before. */
  readonly isFormer: boolean;
};

/** The bridge of GlobalRoute Pods. */
export type BridgeView = {
  readonly name: string;
  /** Undefined while there is none. */
  readonly link: LinkMessage | undefined;
  /** `address/length` of each IPv4 address on it. */
  readonly prefixes: readonly string[];
};

/** Finds the bridge of GlobalRoute Pods. */
export function bridgeViewOf(
  { links, addresses }: Pick<NetnsFacts, 'links' | 'addresses'>,
  node?: NodeNetwork,
): BridgeView {
  const { name, ifindex, isPresent } = locateBridge(links, node?.bridge?.name ?? BRIDGE_NAME);
  const prefixes = addresses
    .filter((address) => isPresent && address.ifindex === ifindex && !address.address.includes(':'))
    .map(ownPrefix);
  return { name, link: links.find((link) => isPresent && link.ifindex === ifindex), prefixes };
}

/**
 * Finds the block of a Pod: by its lease, or, without one, by the network of its own interface or of the bridge that its
 * link is a port of. Undefined for a Pod with an address of an ENI.
 */
export function grViewOf(
  { lease, pod, ips }: NodePod,
  veth: LinkMessage | undefined,
  bridge: BridgeView,
  node?: NodeNetwork,
): GrView | undefined {
  if (lease !== undefined) {
    const { block } = lease;
    return block === undefined ? undefined : viewOf(block.cidr, block.wiring, node);
  }
  // A Pod with a link of its own has a single address.
  const own = (ifKnown(pod.inside)?.addresses ?? [])
    .filter(({ family, prefixlen }) => family === AF_INET && prefixlen < 32)
    .map(ownPrefix);
  const isPort = veth?.master !== undefined && veth.master === bridge.link?.ifindex;
  const prefix = [...own, ...(isPort ? bridge.prefixes : [])].find((each) =>
    ips.some((ip) => prefixContains(each, ip)),
  );
  const cidr = prefix && networkPrefix(prefix);
  return cidr === undefined ? undefined : viewOf(cidr, 'bridge', node);
}

function viewOf(cidr: string, wiring: GrWiring, node: NodeNetwork | undefined): GrView {
  const isFormer = node?.podCidrs.some((each) => each.cidr === cidr && !each.isCurrent) === true;
  return { cidr, gateway: podCidrOf(cidr).gateway, wiring, isFormer };
}
