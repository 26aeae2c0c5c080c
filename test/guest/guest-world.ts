import { readFileSync } from 'node:fs';
import type { HostState } from '../../dataplane/desired.ts';
import type { EniPodNetwork, NodeNetwork, RuleMode } from '../../dataplane/network.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import { type IpOf, podOf, type TestNode } from '../kernel/dataplane/test-node.ts';
import type { Endpoint } from '../support/socket-endpoint.ts';
import { UdpSocket } from '../support/udp-socket.ts';

/** Addresses of the scene: two Pods, hosts behind their ENI, one behind the primary interface, and a Service. */
export const ADDRESS = {
  pod: '10.0.5.20',
  pod6: 'fd00:10:0:5::20',
  other: '10.0.5.21',
  far: '10.0.5.1',
  far6: 'fd00:10:0:5::1',
  outside: '203.0.113.9',
  node: '10.0.0.2',
  service: '10.96.0.10',
} as const;

/** Longest wait for a packet; an emulated machine is slow. */
export const WAIT_MS = 900;
/** A UDP flow is assured when it lasts for two seconds. */
export const ASSURED_MS = 2_500;

/** A Pod that is wired. */
type WiredPod = { readonly netns: Netns; readonly ip: IpOf; readonly network: EniPodNetwork };

/** A node with a flowtable and two Pods, which the scenes use one after the other. */
export type GuestWorld = {
  readonly node: TestNode;
  readonly network: NodeNetwork;
  readonly pod: WiredPod;
  readonly other: WiredPod;
  /** What is planned with a flowtable for these Pods; default both. */
  plan(pods?: readonly WiredPod[]): HostState;
};

/** Wires two Pods on a node and gives the hosts around it their addresses. The flowtable has no links of Pods yet. */
export async function openGuestWorld(
  node: TestNode,
  ruleMode: RuleMode,
  more: Partial<NodeNetwork> = { egress: 'node', fastPath: 'flowtable' },
): Promise<GuestWorld> {
  const { enis, far } = node;
  const [eth5] = enis;
  if (eth5 === undefined) throw new Error('a test node has ENIs');
  const network: NodeNetwork = { ...node.network, ruleMode, ...more };
  await node.reach(planNode(network, enis, []));
  far.ip('link', 'set', 'lo', 'up');
  far.ip('address', 'add', `${ADDRESS.far}/24`, 'dev', 'far5');
  far.ip('address', 'add', `${ADDRESS.far6}/64`, 'dev', 'far5', 'nodad');
  far.ip('address', 'add', '10.0.0.1/24', 'dev', 'far0');
  far.ip('address', 'add', `${ADDRESS.outside}/32`, 'dev', 'lo');
  // As the VPC does: packets to addresses of an ENI go to its MAC.
  for (const address of [ADDRESS.pod, ADDRESS.pod6, ADDRESS.other])
    far.ip('neigh', 'add', address, 'lladdr', eth5.mac, 'dev', 'far5', 'nud', 'permanent');
  const wire = (ips: readonly string[]): WiredPod => wired(node, network, podOf(eth5, ips));
  const pod = wire([ADDRESS.pod, ADDRESS.pod6]);
  const other = wire([ADDRESS.other]);
  const plan = (pods: readonly WiredPod[] = [pod, other]): HostState =>
    planNode(
      network,
      enis,
      pods.map((each) => each.network),
    );
  return { node, network, pod, other, plan };
}

function wired({ kernel, createPodNetns }: TestNode, node: NodeNetwork, pod: EniPodNetwork): WiredPod {
  const space = createPodNetns();
  const wiring = { node, pod, fallbackName: `f${pod.hostVeth.name.slice(-8)}` };
  const { hostIfindex, hostName } = wirePod(kernel, space.netns, wiring);
  return { ...space, network: { ...pod, hostVeth: { ...pod.hostVeth, name: hostName, ifindex: hostIfindex } } };
}

/** Where a flow is from, and the node that it passes. */
type FlowPlace = { readonly node: Pick<TestNode, 'far' | 'netns'>; readonly pod: { readonly netns: Netns } };

/** From where to where a UDP flow is. */
type UdpWay = {
  readonly client: Endpoint;
  readonly server: Endpoint;
  /** Namespace of the server; default outside of the node. */
  readonly to?: Netns;
  /** Where the client sends to instead, as the address of a Service. */
  readonly by?: Endpoint;
  /** Whom the server sees instead of the client. */
  readonly seen?: Endpoint;
};

/** A UDP flow from a Pod, with both its sockets. */
export class UdpFlow {
  readonly client: UdpSocket;
  readonly server: UdpSocket;

  constructor({ pod, node }: FlowPlace, way: UdpWay) {
    this.client = new UdpSocket(pod.netns, way.client, WAIT_MS);
    this.server = new UdpSocket(way.to ?? node.far.netns, way.server, WAIT_MS);
    this.client.connect(way.by ?? way.server);
    this.server.connect(way.seen ?? way.client);
  }

  /** Sends a packet and an answer; says of both whether they came. */
  exchange(): readonly boolean[] {
    this.client.send(Buffer.from('ask'));
    const asked = this.server.receive();
    this.server.send(Buffer.from('answer'));
    return [asked, this.client.receive()];
  }
}

/** Returns what connection tracking has of the connection that was opened to this port, the kernel's own line. */
export function trackedLine({ node }: Pick<FlowPlace, 'node'>, port: number): string {
  const path = `/proc/${process.pid}/task/${process.pid}/net/nf_conntrack`;
  const lines = withNetns(node.netns, () => readFileSync(path, 'utf8')).split('\n');
  // The port of the first direction comes first.
  return lines.find((line) => /dport=(\d+)/.exec(line)?.[1] === String(port)) ?? '';
}

/** Reports whether the kernel follows the connection that was opened to this port in the flowtable. */
export function isOffloaded(world: Pick<FlowPlace, 'node'>, port: number): boolean {
  return trackedLine(world, port).includes('[OFFLOAD]');
}
