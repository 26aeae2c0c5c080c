import { execFileSync } from 'node:child_process';
import { hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import { locateBridge } from '../../../dataplane/locate-bridge.ts';
import type { BridgePodNetwork, GrWiring, NodeNetwork, PodNetwork, RuleMode } from '../../../dataplane/network.ts';
import { BRIDGE_NAME } from '../../../dataplane/numbers.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { blockOf, podCidrOf } from '../../../dataplane/pod-cidr.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { podOf, type TestNode } from './test-node.ts';

/** The present block, and a former one. */
export const BLOCK = podCidrOf('172.31.0.64/26');
export const FORMER = podCidrOf('172.31.7.0/26', false);
/** Two GlobalRoute Pods and one of an ENI. */
export const [A, B, ENI_POD] = ['172.31.0.70', '172.31.0.71', '10.0.5.10'] as const;
/** The address of a Service. */
export const VIP = '10.96.0.10';

type Sandbox = ReturnType<TestNode['createPodNetns']>;
type Wired<Pod extends PodNetwork = PodNetwork> = { readonly pod: Pod; readonly sandbox: Sandbox };

/** The node as it is planned at this moment. */
export function networkOf(node: TestNode, wiring: GrWiring, more: Partial<NodeNetwork> = {}): NodeNetwork {
  const bridge = { ...locateBridge(node.kernel.rtnetlink.link.list(), BRIDGE_NAME), mtu: 1500, wiring };
  return { ...node.network, podCidrs: [BLOCK], ...more, bridge: { ...bridge, ...more.bridge } };
}

/** A GlobalRoute Pod that is not wired yet. */
export function grPod(ip: string, wiring: GrWiring, block = BLOCK): BridgePodNetwork {
  const { eniTable: _none, ...pod } = podOf({ table: 0 }, [ip]);
  return { ...pod, kind: 'bridge', wiring, block: blockOf(block), mtu: 1500 };
}

/** Wires a Pod into a namespace of its own. */
export function wire<Pod extends PodNetwork>(node: TestNode, network: NodeNetwork, pod: Pod): Wired<Pod> {
  const sandbox = node.createPodNetns();
  const fallbackName = hostVethFallbackName(pod.key);
  const { hostName: name, hostIfindex: ifindex } = wirePod(node.kernel, sandbox.netns, {
    node: network,
    pod,
    fallbackName,
  });
  return { pod: { ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }, sandbox };
}

/** Whether pings are answered, each once, and by the address that was asked. */
export function pings(from: { readonly name: string }, to: string, source?: string): boolean {
  const args = ['netns', 'exec', from.name, 'ping', '-n', '-c2', '-i0.2', '-W1', ...(source ? ['-I', source] : []), to];
  try {
    return !/DUP!|DIFFERENT ADDRESS/.test(execFileSync('ip', args, { encoding: 'utf8', stdio: 'pipe' }));
  } catch {
    return false;
  }
}

/** A node with two GlobalRoute Pods and one of an ENI. */
export async function threePods(node: TestNode, ruleMode: RuleMode, wiring: GrWiring) {
  await node.reach(planNode(networkOf(node, wiring, { ruleMode }), node.enis, []));
  const network = networkOf(node, wiring, { ruleMode });
  const [eni] = node.enis;
  if (eni === undefined) throw new Error('a test node has ENIs');
  const a = wire(node, network, grPod(A, wiring));
  const b = wire(node, network, grPod(B, wiring));
  const ofEni = wire(node, network, podOf(eni, [ENI_POD]));
  const pods = [a.pod, b.pod, ofEni.pod];
  const plan = () => planNode(networkOf(node, wiring, { ruleMode }), node.enis, pods);
  return { network, a, b, ofEni, pods, plan };
}

/** What kube-proxy makes of a Service with one Pod: its requests from that Pod itself are masqueraded. */
export function serve(node: TestNode, ip: string): void {
  node.run('nft', 'add table ip service');
  node.run('nft', 'add chain ip service pre { type nat hook prerouting priority dstnat; }');
  node.run('nft', 'add chain ip service post { type nat hook postrouting priority srcnat; }');
  node.run('nft', `add rule ip service pre ip daddr ${VIP} dnat to ${ip}`);
  node.run('nft', `add rule ip service post ip saddr ${ip} ip daddr ${ip} masquerade`);
}
