import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { applyOperations } from '../../dataplane/apply.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { EniNetwork, NodeNetwork, PodNetwork, RuleMode } from '../../dataplane/network.ts';
import { openNft } from '../../dataplane/nft.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { createNetns, deleteNetns, type Netns } from '../../netlink/netns.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { Child } from '../../sim/support/child.ts';
import { NetnsView } from '../../sim/support/netns.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { ipForward } from '../../sysctl/sysctl-key.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { type GrPathSpec, layBridgePlugin, layGr } from './gr-path.ts';
import { podMac, unwiredPod } from './pods.ts';

/** Which kernel the packets go through. */
export type PathSpec =
  | { readonly kind: 'ours'; readonly ruleMode: RuleMode; readonly pods: number }
  /** No rule of ours. `isTracked`: with connection tracking as ours needs it; `hasIdleRule`: with one policy rule that does nothing. */
  | { readonly kind: 'plain'; readonly isTracked: boolean; readonly hasIdleRule?: boolean }
  /** As the node's own Pods: they leave by `eth5`, which stands for the primary. */
  | GrPathSpec
  | { readonly kind: 'bridge-plugin'; readonly hasIdleRule?: boolean };

/** A Pod, a node, an ENI and what lies behind it: packets go one way, from the Pod to the far end. */
export type Path = {
  /** Sends for `ms` and returns packets per second that arrived. */
  measure(ms: number): Promise<number>;
  close(): Promise<void>;
};

const POD_IP = '10.0.5.250';
const FAR_IP = '203.0.113.10';
/** Two ENIs, as most nodes have: each costs rules. */
const ENI_NUMBERS = [5, 6];
const MAC = { far: '02:fa:00:00:00:01', eni: '02:e0:00:00:00:01' };

type Views = { readonly pod: NetnsView; readonly node: NetnsView; readonly far: NetnsView };

/** One chain that asks for a connection: that is what turns connection tracking on in a namespace. */
const TRACKING_TABLE = `table inet peer {
  chain in {
    type filter hook prerouting priority mangle; policy accept;
    ct direction original accept
  }
}
`;

/** Lays one path in namespaces of its own; `close` removes them. */
export async function openPath(spec: PathSpec): Promise<Path> {
  const stem = `tke-bench-${randomBytes(4).toString('hex')}`;
  const names = ['pod', 'node', 'far', 'crowd'].map((role) => `${stem}-${role}`);
  const viewOf = (role: string) => new NetnsView(`${stem}-${role}`);
  const spaces: Netns[] = [];
  const children: Child[] = [];
  const start = async (view: NetnsView, script: string, ...args: readonly string[]): Promise<Child> => {
    const child = view.start([process.execPath, join(import.meta.dirname, script), ...args]);
    children.push(child);
    await waitUntil(() => child.stdout.includes('ready'), { what: script, explain: () => child.stderr });
    return child;
  };
  const close = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop('SIGTERM', 1_000)));
    for (const space of spaces) space.close();
    for (const name of names) deleteNetns(name);
  };
  try {
    for (const name of names) spaces.push(createNetns(name));
    const [pod, node, , crowd] = spaces as [Netns, Netns, Netns, Netns];
    const views = { pod: viewOf('pod'), node: viewOf('node'), far: viewOf('far') };
    await layLinks(views);
    using rtnetlink = openRtnetlinkIn(node);
    openSysctl(node).set(ipForward(), '1');
    if (spec.kind === 'gr' || spec.kind === 'bridge-plugin') {
      await layWayOut(views.node);
      if (spec.kind === 'gr') {
        await layGr(spec, rtnetlink, { node, pod, primary: 'eth5', enis: [benchEni(6)] });
      } else {
        await layBridgePlugin(node, pod);
        await layPeerRules(views.node, spec);
      }
    } else {
      await layPodLink(views);
      if (spec.kind === 'ours') await layOurs(spec, rtnetlink, { node, crowd });
      else await layPlain(spec, views.node);
      await layPodSide(views.pod);
    }
    await start(views.far, 'udp-sink.ts');
    const sender = await start(views.pod, 'udp-sender.ts', FAR_IP);
    return { measure: (ms) => measure(sender, views.far, ms), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function layLinks({ node, far }: Views): Promise<void> {
  await node.ipBatch([
    'link set lo up',
    'link add eth0 type veth peer name far0',
    'address add 10.0.0.2/24 dev eth0',
    'link set eth0 up',
    'link set far0 up',
    ...ENI_NUMBERS.map(
      (n) =>
        `link add eth${n} index ${n + 20} ${n === 5 ? `address ${MAC.eni}` : ''} type veth peer name far${n} netns ${far.name} ${n === 5 ? `address ${MAC.far}` : ''}`,
    ),
    ...ENI_NUMBERS.map((n) => `link set eth${n} up`),
  ]);
  await far.ipBatch([
    'link set lo up',
    ...ENI_NUMBERS.map((n) => `link set far${n} up`),
    `address add ${FAR_IP}/32 dev far5`,
    'route add default dev far5',
  ]);
}

async function layPodLink({ pod, node }: Views): Promise<void> {
  await node.ipBatch([
    `link add podlink address ${podMac.host} type veth peer name eth0 netns ${pod.name} address ${podMac.pod}`,
    'link set podlink up',
  ]);
}

async function layPodSide(pod: NetnsView): Promise<void> {
  await pod.ipBatch([
    'link set lo up',
    'link set eth0 up',
    `address add ${POD_IP}/32 dev eth0`,
    'route add 169.254.1.1 dev eth0 scope link',
    'route add default via 169.254.1.1',
    `neigh replace 169.254.1.1 lladdr ${podMac.host} dev eth0 nud permanent`,
  ]);
}

async function layPlain(spec: PathSpec & { kind: 'plain' }, node: NetnsView): Promise<void> {
  await node.ipBatch([`route add ${POD_IP}/32 dev podlink`]);
  await layWayOut(node);
  if (spec.isTracked) await layPeerRules(node, spec);
}

async function layWayOut(node: NetnsView): Promise<void> {
  await node.ipBatch([
    'route add 10.0.5.1 dev eth5',
    'route add default via 10.0.5.1 dev eth5',
    `neigh replace 10.0.5.1 lladdr ${MAC.far} dev eth5 nud permanent`,
  ]);
}

async function layPeerRules(node: NetnsView, { hasIdleRule }: { readonly hasIdleRule?: boolean }): Promise<void> {
  await node.nft(TRACKING_TABLE);
  if (hasIdleRule === true) await node.ip('rule', 'add', 'pref', '30000', 'lookup', 'main');
}

async function layOurs(
  { ruleMode, pods: count }: { readonly ruleMode: RuleMode; readonly pods: number },
  rtnetlink: Rtnetlink,
  { node, crowd }: { readonly node: Netns; readonly crowd: Netns },
): Promise<void> {
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
  };
  const enis = ENI_NUMBERS.map(benchEni);
  const measured = pod(rtnetlink, 'podlink', POD_IP);
  const others = Array.from({ length: count - 1 }, (_, at) => {
    const name = `crowd${at}`;
    rtnetlink.link.add({ kind: 'veth', ifname: name, up: true, peer: { ifname: name, netns: crowd } });
    return pod(rtnetlink, name, `10.1.${at >> 8}.${at & 255}`);
  });
  // In the middle of the others: in per-pod mode the kernel walks half of the rules that lead out.
  const half = Math.floor(others.length / 2);
  const desired = planNode(network, enis, [...others.slice(0, half), measured, ...others.slice(half)]);
  const kernel = { rtnetlink, sysctl: openSysctl(node), nft: openNft({ netnsPath: node.path }) };
  await applyOperations(kernel, diffHost(desired, await observeHost(kernel, desired)).operations);
  rtnetlink.neigh.replace({ ifindex: 25, dst: '10.0.5.1', lladdr: MAC.far });
}

function pod(rtnetlink: Rtnetlink, ifname: string, ip: string): PodNetwork {
  return unwiredPod(ip, 4025, ifname, rtnetlink.link.get({ ifname })?.ifindex ?? 0);
}

function benchEni(n: number): EniNetwork {
  const addresses = [{ ip: `10.0.${n}.5`, gateway: `10.0.${n}.1` }];
  return {
    eniId: `eni-${n}`,
    mac: '',
    ifindex: n + 20,
    ifname: `eth${n}`,
    mtu: 1500,
    table: 4020 + n,
    slot: n,
    addresses,
  };
}

async function measure(sender: Child, far: NetnsView, ms: number): Promise<number> {
  const before = await received(far);
  const answered = sender.stdout.length;
  sender.writeLine(`${ms}`);
  const answer = await waitUntil(() => /^\d+ ([\d.]+)\n/.exec(sender.stdout.slice(answered)) ?? undefined, {
    what: 'end of the burst',
    explain: () => sender.stderr,
  });
  return ((await received(far)) - before) / (Number(answer[1]) / 1_000);
}

async function received(far: NetnsView): Promise<number> {
  const [link] = await far.ipJson('-s', 'link', 'show', 'far5');
  const stats = link?.['stats64'] as { readonly rx: { readonly packets: number } } | undefined;
  if (stats === undefined) throw new Error(`${far.name}: no counters of far5`);
  return stats.rx.packets;
}
