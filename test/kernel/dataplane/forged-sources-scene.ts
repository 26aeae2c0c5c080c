import { setTimeout as sleep } from 'node:timers/promises';
import { planNode } from '../../../dataplane/plan-node.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { arpRequest, udpFrame } from '../../support/forged-frame.ts';
import { PacketSocket } from '../../support/packet-socket.ts';
import { UdpSocket } from '../../support/udp-socket.ts';
import { podOf, type TestNode } from './test-node.ts';

const POD_IP = '10.0.5.20';
const FENCE = 'fence';
const FENCE_TRIES = 200;
const PORTS = { sport: 1_000, dport: 2_000 };

/** Sources that packets are sent with from behind the ENI eth5. Its network is 10.0.5.0/24; the node is 10.0.0.2. */
export const SOURCES = {
  'a host of the VPC': '10.0.77.7',
  'a host outside': '203.0.113.10',
  'the primary address of the node': '10.0.0.2',
  'the address of the ENI': '10.0.5.5',
  'the address of the other ENI': '10.0.6.5',
  'the Pod itself': POD_IP,
  'another Pod of the ENI': '10.0.5.21',
  'a Pod of the other ENI': '10.0.6.20',
  'a GlobalRoute address of the node': '172.31.0.9',
  'an address that another program added': '169.254.20.10',
  loopback: '127.0.0.1',
  'another loopback address': '127.9.9.9',
  'the broadcast of the primary subnet': '10.0.0.255',
  'the limited broadcast': '255.255.255.255',
  multicast: '224.0.0.1',
  zero: '0.0.0.0',
  'class E': '240.0.0.1',
  'a blackhole route': '198.51.100.1',
  'an unreachable route': '198.51.101.1',
  'a prohibit route': '198.51.102.1',
} as const;

export type SourceName = keyof typeof SOURCES;

/** What arrived. */
export type Arrivals = {
  /** Sources of new flows that reached the Pod. */
  readonly atPod: readonly SourceName[];
  /** Sources whose packets a socket of the node got, on the ENI's address. */
  readonly atNode: readonly SourceName[];
  /** Whether a forged packet reaches the Pod in a live flow between it and the node: as a request, and as an answer. */
  readonly inLiveFlow: { readonly request: boolean; readonly answer: boolean };
  /** Senders whose ARP request for the ENI's address was answered. */
  readonly arp: readonly SourceName[];
};

/** Plans a node with three Pods, changes it by `change`, and sends a packet of each source by the ENI eth5. */
export async function sendForgedSources(node: TestNode, change: (node: TestNode) => void): Promise<Arrivals> {
  const { kernel, network, enis, reach, ip } = node;
  const [eth5, eth6] = enis;
  if (eth5 === undefined || eth6 === undefined) throw new Error('a test node has two ENIs');
  await reach(planNode(network, enis, []));
  const wired = [podOf(eth5, [POD_IP]), podOf(eth5, ['10.0.5.21']), podOf(eth6, ['10.0.6.20'])].map((pod) => {
    const space = node.createPodNetns();
    wirePod(kernel, space.netns, { node: network, pod, fallbackName: `f${pod.hostVeth.name.slice(-8)}` });
    return space;
  });
  ip('address', 'add', SOURCES['an address that another program added'], 'dev', 'lo');
  for (const [type, third] of [
    ['blackhole', 100],
    ['unreachable', 101],
    ['prohibit', 102],
  ] as const) {
    ip('route', 'add', type, `198.51.${third}.0/24`);
  }
  change(node);
  return await send(node, wired[0] as NonNullable<(typeof wired)[0]>);
}

async function send(node: TestNode, pod: ReturnType<TestNode['createPodNetns']>): Promise<Arrivals> {
  const { enis, far, netns } = node;
  const linkOf = (one: TestNode['far'], name: string) => {
    const [link] = one.ip.json('link', 'show', name);
    return { ifindex: Number(link?.['ifindex']), mac: String(link?.['address']) };
  };
  const far5 = linkOf(far, 'far5');
  using wire = new PacketSocket(far.netns, far5.ifindex);
  using atPod = new PacketSocket(pod.netns, linkOf(pod, 'eth0').ifindex);
  // A packet of the fence, which was sent later, is at the Pod by then.
  using atNode = new UdpSocket(netns, { ip: '0.0.0.0', port: PORTS.dport }, 1);
  const macs = { dstMac: enis[0]?.mac ?? '', srcMac: far5.mac };
  /** Sends a frame, then one that surely arrives; tells whether the first one did. */
  const arrives = async (change: Partial<Parameters<typeof udpFrame>[0]>): Promise<boolean> => {
    atPod.read();
    const plain = { ...macs, ...PORTS, src: SOURCES['a host of the VPC'], dst: POD_IP };
    wire.send(udpFrame({ ...plain, ...change, payload: 'forged' }));
    const seen: string[] = [];
    for (let tries = 0; tries < FENCE_TRIES; tries++) {
      wire.send(udpFrame({ ...plain, payload: FENCE }));
      seen.push(...atPod.read().map((frame) => frame.toString('latin1')));
      if (seen.some((frame) => frame.endsWith(FENCE))) return seen.some((frame) => frame.endsWith('forged'));
      await sleep(5);
    }
    throw new Error('packets of a host of the VPC do not reach the Pod');
  };
  const names = Object.keys(SOURCES) as SourceName[];
  const pick = async (test: (name: SourceName) => Promise<boolean>): Promise<readonly SourceName[]> => {
    const picked: SourceName[] = [];
    for (const name of names) if (await test(name)) picked.push(name);
    return picked;
  };
  return {
    atPod: await pick((name) => arrives({ src: SOURCES[name] })),
    atNode: await pick(async (name) => {
      await arrives({ src: SOURCES[name], dst: enis[0]?.addresses[0]?.ip ?? '' });
      return atNode.receive();
    }),
    inLiveFlow: await inLiveFlow(node, pod, arrives),
    arp: await pick(async (name) => {
      wire.read();
      wire.send(arpRequest({ srcMac: far5.mac, sender: SOURCES[name], target: enis[0]?.addresses[0]?.ip ?? '' }));
      await arrives({});
      return wire.read().some((frame) => frame.readUInt16BE(12) === 0x0806 && frame.readUInt16BE(20) === 2);
    }),
  };
}

/** A flow from the node to the Pod and one from the Pod to the node, each answered; then a packet of it comes in by the ENI. */
async function inLiveFlow(
  { netns }: TestNode,
  pod: { readonly netns: TestNode['netns'] },
  arrives: (change: Partial<Parameters<typeof udpFrame>[0]>) => Promise<boolean>,
): Promise<Arrivals['inLiveFlow']> {
  const nodeIp = SOURCES['the primary address of the node'];
  using client = new UdpSocket(netns, { ip: nodeIp, port: 0 });
  using server = new UdpSocket(pod.netns, { ip: POD_IP, port: 7_000 });
  exchange(client, server);
  using podClient = new UdpSocket(pod.netns, { ip: POD_IP, port: 0 });
  using nodeServer = new UdpSocket(netns, { ip: nodeIp, port: 7_001 });
  exchange(podClient, nodeServer);
  return {
    request: await arrives({ src: nodeIp, sport: client.local.port, dport: 7_000 }),
    answer: await arrives({ src: nodeIp, sport: 7_001, dport: podClient.local.port }),
  };
}

function exchange(client: UdpSocket, server: UdpSocket): void {
  client.connect(server.local);
  server.connect(client.local);
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.send(Buffer.from('live'));
    if (!to.receive()) throw new Error('node and Pod do not reach each other');
  }
}
