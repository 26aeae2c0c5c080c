import { checkPod, differences } from '../../dataplane/check-pod.ts';
import { mergeHostState } from '../../dataplane/desired.ts';
import { hostVethFallbackName } from '../../dataplane/host-veth-name.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../dataplane/network.ts';
import { nftTable } from '../../dataplane/nft-table.ts';
import { DEFAULT_ENI_MARK_MASK } from '../../dataplane/numbers.ts';
import { planEni } from '../../dataplane/plan-eni.ts';
import { planHost } from '../../dataplane/plan-host.ts';
import { unwirePod } from '../../dataplane/unwire-pod.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import { type Netns, openOwnNetns } from '../../netlink/netns.ts';
import { CNI_CODE, CniFailureError } from '../cni-failure.ts';
import type { PodWiring } from '../ports.ts';

/** What wiring a Pod needs of the node. */
export type PodWiringDeps = {
  readonly kernel: Kernel;
  /** The node as it is now, in the rule mode in force; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
  readonly enis: () => readonly EniNetwork[];
};

const ANY_NODE: NodeNetwork = {
  ruleMode: 'compact',
  eniMarkMask: DEFAULT_ENI_MARK_MASK,
  rpFilterMode: 'loose',
  egress: 'eni',
  primary: { ifindex: 0, ifname: '', addresses: [] },
  podCidrs: [],
  families: [4],
  nodePort: false,
  vpcCidrs: [],
};

/** Binds the data plane's functions for one Pod to the host's kernel. */
export function openPodWiring({ kernel, nodeNetwork, enis }: PodWiringDeps): PodWiring {
  const node = (): NodeNetwork => {
    const found = nodeNetwork();
    if (found !== undefined) return found;
    throw new CniFailureError(
      CNI_CODE.tryAgainLater,
      'the node has no primary interface yet',
      'see --primary-interface',
    );
  };
  return {
    wire: (pod, netns) => wire(kernel, node(), pod, netns),
    unwire: async (pod) => {
      // What must go does not depend on the primary interface, and a DEL must not wait for one.
      await unwirePod(kernel, nodeNetwork() ?? ANY_NODE, pod).finished;
    },
    check: async (pod, netns, depth) => {
      const network = node();
      if (depth === 'own') return await checkPod(kernel, netns, { node: network, pod });
      const nft = network.nftables === false ? undefined : nftTable(network, enis());
      const own = await checkPod(kernel, netns, { node: network, pod, ...(nft === undefined ? {} : { nft }) });
      return [...own, ...sharedDifferences(kernel, network, enis(), pod)];
    },
  };
}

/** What the Pod's packets need and other Pods need as well: the node's rules, and its ENI. */
function sharedDifferences(
  kernel: Kernel,
  node: NodeNetwork,
  enis: readonly EniNetwork[],
  { eniTable }: PodNetwork,
): readonly string[] {
  const { nft: _nft, ...host } = planHost(node, enis);
  const own = enis.filter(({ table }) => table === eniTable).map((eni) => planEni(node, eni));
  return differences(kernel, mergeHostState(host, ...own), 'host');
}

function wire(kernel: Kernel, node: NodeNetwork, pod: PodNetwork, netns: Netns | undefined) {
  const fallbackName = hostVethFallbackName(pod.key);
  if (netns !== undefined) {
    const { hostIfindex, hostName } = wirePod(kernel, netns, { node, pod, fallbackName });
    return { ifindex: hostIfindex, name: hostName };
  }
  // Only rules: the namespace is not entered, whichever it is.
  using own = openOwnNetns();
  wirePod(kernel, own, { node, pod, fallbackName });
  return undefined;
}
