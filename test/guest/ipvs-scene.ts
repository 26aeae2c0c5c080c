import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeNetwork } from '../../dataplane/network.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import { withTestNode } from '../kernel/dataplane/test-node.ts';
import { TcpPair } from '../support/tcp-socket.ts';
import { ADDRESS, ASSURED_MS, type GuestWorld, openGuestWorld, UdpFlow, WAIT_MS } from './guest-world.ts';
import { report } from './report.ts';

// Runs in a guest whose kernel has IPVS: Services as kube-proxy in mode ipvs serves them.

const SERVICE6 = 'fd00:10:96::10';
/** Bytes that a TCP connection carries each way: more than a segment. */
const TCP_BYTES = 20_000;

const MODES: Readonly<Record<string, Partial<NodeNetwork>>> = {
  compact: { ruleMode: 'compact' },
  'per-pod': { ruleMode: 'per-pod' },
  'egress by the node': { ruleMode: 'compact', egress: 'node' },
  flowtable: { ruleMode: 'compact', fastPath: 'flowtable' },
};

execFileSync('modprobe', ['-a', 'ip_vs', 'ip_vs_rr', 'dummy']);
for (const [name, { ruleMode = 'compact', ...more }] of Object.entries(MODES)) {
  await withTestNode(async (node) => report(name, await ipvsScene(await openGuestWorld(node, ruleMode, more))));
}

/** Who asks whom by a Service; `service`: an address of the node in place of the Service's own. */
type Way = {
  readonly from: Netns;
  readonly to: Netns;
  readonly client: string;
  readonly server: string;
  readonly service?: string;
};

/** Returns of each way and protocol whether the question and its answer came, and whether they still do when the flow is assured. */
async function ipvsScene({ node, pod, other, plan }: GuestWorld): Promise<Readonly<Record<string, unknown>>> {
  await node.reach(plan());
  // As the VPC does: a packet that comes in by another port than its source's is dropped.
  for (const link of ['all', 'far0', 'far5'])
    withNetns(node.far.netns, () => writeFileSync(`/proc/sys/net/ipv4/conf/${link}/rp_filter`, '1'));
  node.ip('link', 'add', 'kube-ipvs0', 'up', 'type', 'dummy');
  node.ip('address', 'add', `${ADDRESS.service}/32`, 'dev', 'kube-ipvs0');
  node.ip('address', 'add', `${SERVICE6}/128`, 'dev', 'kube-ipvs0', 'nodad');
  // IPVS asks for a route itself, and drops what has none.
  node.ip('route', 'add', 'default', 'via', 'fd00:10::1');
  node.run('sysctl', '-w', 'net.ipv4.vs.conntrack=1', 'net.ipv4.vs.conn_reuse_mode=0');
  const far = node.far.netns;
  const ways: Readonly<Record<string, Way>> = {
    'Pod to a Pod of another node': { from: pod.netns, client: ADDRESS.pod, to: far, server: ADDRESS.far },
    IPv6: { from: pod.netns, client: ADDRESS.pod6, to: far, server: ADDRESS.far6, service: SERVICE6 },
    'Pod to a Pod of its node': { from: pod.netns, client: ADDRESS.pod, to: other.netns, server: ADDRESS.other },
    'node to a Pod': { from: node.netns, client: ADDRESS.node, to: pod.netns, server: ADDRESS.pod },
    'node port': { from: far, client: ADDRESS.outside, service: ADDRESS.node, to: pod.netns, server: ADDRESS.pod },
  };
  const seen: Record<string, unknown> = {};
  let port = 8_000;
  for (const [name, { from, to, client, server, service = ADDRESS.service }] of Object.entries(ways)) {
    port++;
    const [at, end] = [
      { ip: service, port },
      { ip: server, port: port + 100 },
    ];
    for (const protocol of ['-u', '-t']) {
      node.run('ipvsadm', '-A', protocol, text(at), '-s', 'rr');
      node.run('ipvsadm', '-a', protocol, text(at), '-r', text(end), '-m');
    }
    const ends = { client: { ip: client, port: port + 200 }, server: end, by: at };
    const udp = new UdpFlow({ node, pod: { netns: from } }, { ...ends, to });
    const tcp = new TcpPair({ ...ends, from, to }, WAIT_MS);
    const exchange = () => [...udp.exchange(), ...tcp.exchange(TCP_BYTES)];
    const first = exchange();
    await sleep(ASSURED_MS);
    exchange();
    seen[name] = [...first, ...exchange()];
  }
  return seen;
}

function text({ ip, port }: { readonly ip: string; readonly port: number }): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
