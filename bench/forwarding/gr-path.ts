import { applyOperations } from '../../dataplane/apply.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { enterNetns } from '../../dataplane/enter-netns.ts';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { BridgePodNetwork, EniNetwork, GrWiring, NodeNetwork, RuleMode } from '../../dataplane/network.ts';
import { openNft } from '../../dataplane/nft.ts';
import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { blockOf, podCidrOf } from '../../dataplane/pod-cidr.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import type { Netns } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { bridgeCallIptables } from '../../sysctl/sysctl-key.ts';
import { execCni } from '../../test/support/exec-cni.ts';
import { createTempDir } from '../../test/support/temp-dir.ts';
import { unwiredPod } from './pods.ts';

/** A GlobalRoute Pod of ours. */
export type GrPathSpec = { readonly kind: 'gr'; readonly wiring: GrWiring; readonly ruleMode: RuleMode };

const BLOCK = podCidrOf('172.31.0.0/24');
const POD_IP = '172.31.0.250';

/** Wires the Pod by our data plane. `primary` is the link by which its packets leave, `enis` are the node's. */
export async function layGr(
  { wiring, ruleMode }: GrPathSpec,
  rtnetlink: Rtnetlink,
  { node, pod, primary, enis }: { node: Netns; pod: Netns; primary: string; enis: readonly EniNetwork[] },
): Promise<void> {
  const networkOf = (): NodeNetwork => ({
    ...{ ruleMode, eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni', families: [4], nodePort: true },
    primary: {
      ifindex: rtnetlink.link.get({ ifname: primary })?.ifindex ?? 0,
      ifname: primary,
      addresses: ['10.0.0.2'],
    },
    ...{ podCidrs: [BLOCK], vpcCidrs: ['10.0.0.0/16'] },
    // Without the masquerade: in the peer's world another program does it.
    bridge: { ...locateBridge(rtnetlink.link.list(), BRIDGE_NAME), mtu: 1500, wiring },
  });
  const kernel = { rtnetlink, sysctl: openSysctl(node), nft: openNft({ netnsPath: node.path }), enter: enterNetns };
  const desired = planNode(networkOf(), enis, []);
  await applyOperations(kernel, diffHost(desired, await observeHost(kernel, desired)).operations);
  const { eniTable: _none, ...unwired } = unwiredPod(POD_IP, 0, 'podlink');
  const network: BridgePodNetwork = { ...unwired, kind: 'bridge', wiring, block: blockOf(BLOCK) };
  wirePod(kernel, pod, { node: networkOf(), pod: network, fallbackName: 'podlink2' });
}

/** Wires the Pod by Debian's bridge and host-local. */
export async function layBridgePlugin(node: Netns, pod: Netns): Promise<void> {
  // As the product does for its bridge.
  openSysctl(node).set(bridgeCallIptables(), '1');
  const dir = createTempDir('bench-bridge');
  const conf = {
    ...{ cniVersion: '1.0.0', name: 'peer', type: 'bridge', bridge: 'cbr0', isGateway: true, hairpinMode: true },
    ...{ mtu: 1500, ipam: { type: 'host-local', dataDir: dir.path, ranges: [[{ subnet: BLOCK.cidr }]] } },
  };
  const withRoute = { ...conf, ipam: { ...conf.ipam, routes: [{ dst: '0.0.0.0/0' }] } };
  const answer = await execCni({
    ...{ binary: '/usr/lib/cni/bridge', command: 'ADD', conf: withRoute, netns: node.path },
    env: { CNI_CONTAINERID: 'bench', CNI_NETNS: pod.path, CNI_IFNAME: 'eth0', CNI_PATH: '/usr/lib/cni' },
  });
  dir.close();
  if (answer.exitCode !== 0) throw new Error(`bridge ADD failed: ${answer.stdout}${answer.stderr}`);
}
