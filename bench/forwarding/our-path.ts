import { applyOperations } from '../../dataplane/apply.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { type FlowPrograms, openFlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import type { EniNetwork, NodeNetwork, PodNetwork, RuleMode } from '../../dataplane/network.ts';
import { openNft } from '../../dataplane/nft.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import type { Netns } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { unwiredPod } from './pods.ts';

/** A Pod of an ENI of ours, with all other Pods of its node. */
export type OurPathSpec = {
  readonly kind: 'ours';
  readonly ruleMode: RuleMode;
  readonly pods: number;
  /** Absent: the kernel decides for each packet. */
  readonly fastPath?: NonNullable<NodeNetwork['fastPath']>;
};

/** Two ENIs, as most nodes have: each costs rules. */
export const ENI_NUMBERS = [5, 6];

/** Where the plan is applied. `crowd` has the other ends of the links of all other Pods. */
type OurPlace = {
  readonly rtnetlink: Rtnetlink;
  readonly node: Netns;
  readonly crowd: Netns;
  readonly podIp: string;
  /** MAC of the gateway of the ENI eth5. */
  readonly farMac: string;
};

/** Brings the node to the plan. Returns the fast path's programs, if it has any; the caller must close them. */
export async function layOurs(
  { ruleMode, pods: count, fastPath }: OurPathSpec,
  { rtnetlink, node, crowd, podIp, farMac }: OurPlace,
): Promise<FlowPrograms | undefined> {
  const network: NodeNetwork = {
    ruleMode,
    eniMarkMask: 0x00ff0000,
    rpFilterMode: 'loose',
    egress: 'eni',
    primary: { ifindex: rtnetlink.link.get({ ifname: 'eth0' })?.ifindex ?? 0, ifname: 'eth0', addresses: ['10.0.0.2'] },
    podCidrs: [podCidrOf('172.31.0.0/24')],
    families: [4],
    nodePort: true,
    vpcCidrs: ['10.0.0.0/16'],
    ...(fastPath && { fastPath }),
  };
  const enis = ENI_NUMBERS.map((n) => benchEni(rtnetlink, n));
  const measured = pod(rtnetlink, 'podlink', podIp);
  const others = Array.from({ length: count - 1 }, (_, at) => {
    const name = `crowd${at}`;
    rtnetlink.link.add({ kind: 'veth', ifname: name, up: true, peer: { ifname: name, netns: crowd } });
    return pod(rtnetlink, name, `10.1.${at >> 8}.${at & 255}`);
  });
  // In the middle of the others: in per-pod mode the kernel walks half of the rules that lead out.
  const half = Math.floor(others.length / 2);
  const desired = planNode(network, enis, [...others.slice(0, half), measured, ...others.slice(half)]);
  const flows = fastPath === 'bpf' ? openFlowPrograms() : undefined;
  const kernel = {
    ...{ rtnetlink, sysctl: openSysctl(node), nft: openNft({ netnsPath: node.path }) },
    ...(flows && { flows }),
  };
  await applyOperations(kernel, diffHost(desired, await observeHost(kernel, desired)).operations);
  rtnetlink.neigh.replace({ ifindex: 25, dst: '10.0.5.1', lladdr: farMac });
  return flows;
}

function pod(rtnetlink: Rtnetlink, ifname: string, ip: string): PodNetwork {
  return unwiredPod(ip, 4025, ifname, rtnetlink.link.get({ ifname })?.ifindex ?? 0);
}

/** An ENI of the node, which is the link `eth<n>`. */
export function benchEni(rtnetlink: Rtnetlink, n: number): EniNetwork {
  const ifname = `eth${n}`;
  const addresses = [{ ip: `10.0.${n}.5`, gateway: `10.0.${n}.1` }];
  return {
    eniId: `eni-${n}`,
    mac: rtnetlink.link.get({ ifname })?.address ?? '',
    ifindex: n + 20,
    ifname,
    mtu: 1500,
    table: 4020 + n,
    slot: n,
    addresses,
  };
}
