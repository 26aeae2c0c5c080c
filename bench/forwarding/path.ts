import { randomBytes } from 'node:crypto';
import type { FlowPrograms } from '../../dataplane/fast-path/flow-programs.ts';
import { createNetns, deleteNetns, type Netns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { NetnsView } from '../../sim/support/netns.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { ipForward } from '../../sysctl/sysctl-key.ts';
import { Flow, type FlowEnds } from './flow.ts';
import { type GrPathSpec, layBridgePlugin, layGr } from './gr-path.ts';
import { benchEni, ENI_NUMBERS, layOurs, type OurPathSpec } from './our-path.ts';
import { podMac } from './pods.ts';

/** Which kernel the packets go through. */
export type PathSpec =
  | OurPathSpec
  /** No rule of ours. `isTracked`: with connection tracking as ours needs it; `hasIdleRule`: with one policy rule that does nothing. */
  | { readonly kind: 'plain'; readonly isTracked: boolean; readonly hasIdleRule?: boolean }
  /** As the node's own Pods: they leave by `eth5`, which stands for the primary. */
  | GrPathSpec
  | { readonly kind: 'bridge-plugin'; readonly hasIdleRule?: boolean };

/** A Pod, a node, an ENI and what lies behind it, with one flow for each measure. */
export type Path = {
  readonly flows: { readonly egress: Flow; readonly ingress: Flow; readonly roundTrip: Flow };
  /** How many flows the fast path has learned; absent where there is none. */
  learned?(): number;
  close(): void;
};

const POD_IP = '10.0.5.250';
const FAR_IP = '203.0.113.10';
const FAR_GATEWAY = '10.0.5.254';
const MAC = { far: '02:fa:00:00:00:01', eni: '02:e0:00:00:00:01' };

/** Namespaces of one path. `crowd` has the other ends of the links of all other Pods. */
const ROLES = ['pod', 'node', 'far', 'crowd'] as const;
type Spaces = Readonly<Record<(typeof ROLES)[number], Netns>>;
type Views = { readonly pod: NetnsView; readonly node: NetnsView; readonly far: NetnsView };

/** One chain that asks for a connection: that is what turns connection tracking on in a namespace. */
const TRACKING_TABLE = `table inet peer {
  chain in {
    type filter hook prerouting priority mangle; policy accept;
    ct direction original accept
  }
}
`;

/** Lays one path in namespaces of its own; `close` removes them. Its flows have sent nothing yet. */
export async function openPath(spec: PathSpec): Promise<Path> {
  using undo = new DisposableStack();
  const stem = `tke-bench-${randomBytes(4).toString('hex')}`;
  const open = (role: string): Netns => {
    const space = undo.use(createNetns(`${stem}-${role}`));
    undo.defer(() => deleteNetns(`${stem}-${role}`));
    return space;
  };
  const spaces = Object.fromEntries(ROLES.map((role) => [role, open(role)])) as Spaces;
  const programs = await layKernel(spec, spaces, stem);
  if (programs !== undefined) undo.use(programs);
  const { pod, node, far } = spaces;
  const tracker = spec.kind === 'plain' && !spec.isTracked ? {} : { tracker: node };
  const openFlow = (ends: FlowEnds): Flow => undo.use(new Flow({ ...ends, ...tracker }));
  const outward = { from: pod, to: far, ip: FAR_IP, ifname: 'far5' };
  const egress = openFlow({ ...outward, port: 9001 });
  const roundTrip = openFlow({ ...outward, port: 9002, isReflected: true });
  await new NetnsView(`${stem}-far`).nft(reflector(roundTrip));
  // Another program may have chosen the Pod's address.
  const podIp = egress.sender.local.ip;
  const ingress = openFlow({ from: far, to: pod, ip: podIp, ifname: 'eth0', port: 9003 });
  const kept = undo.move();
  return {
    flows: { egress, ingress, roundTrip },
    ...(programs && { learned: () => programs.flows().length }),
    close: () => kept.dispose(),
  };
}

/**
 * Returns the table with which the far end's kernel sends packets of a flow back at once. An answer by a process takes half of the round trip
 * for its two system calls.
 */
function reflector({ sender, receiver }: Flow): string {
  const [pod, far] = [sender.local, receiver.local];
  const lines = [
    `ether daddr set ${MAC.eni} ether saddr set ${MAC.far}`,
    `ip saddr set ${far.ip} ip daddr set ${pod.ip} udp sport set ${far.port} udp dport set ${pod.port}`,
  ];
  return `table netdev reflector {
  chain in {
    type filter hook ingress device far5 priority 0; policy accept;
    udp dport ${far.port} ${lines.join(' ')} fwd to far5
  }
}
`;
}

async function layKernel(
  spec: PathSpec,
  { pod, node, crowd }: Spaces,
  stem: string,
): Promise<FlowPrograms | undefined> {
  let programs: FlowPrograms | undefined;
  const viewOf = (role: string) => new NetnsView(`${stem}-${role}`);
  const views = { pod: viewOf('pod'), node: viewOf('node'), far: viewOf('far') };
  await layLinks(views);
  using rtnetlink = openRtnetlinkIn(node);
  openSysctl(node).set(ipForward(), '1');
  if (spec.kind === 'gr' || spec.kind === 'bridge-plugin') {
    await layWayOut(views.node);
    if (spec.kind === 'gr') {
      await layGr(spec, rtnetlink, { node, pod, primary: 'eth5', enis: [benchEni(rtnetlink, 6)] });
    } else {
      await layBridgePlugin(node, pod);
      await layPeerRules(views.node, spec);
    }
  } else {
    await layPodLink(views);
    if (spec.kind === 'ours') {
      // Without any route to the far end, loose rp_filter drops its packets.
      await views.node.ip('route', 'add', 'default', 'via', '10.0.0.1');
      programs = await layOurs(spec, { rtnetlink, node, crowd, podIp: POD_IP, farMac: MAC.far });
    } else await layPlain(spec, views.node);
    await layPodSide(views.pod);
  }
  return programs;
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
    // As the VPC's router, which has every address of an ENI behind the ENI.
    `route add default via ${FAR_GATEWAY} dev far5 onlink`,
    `neigh replace ${FAR_GATEWAY} lladdr ${MAC.eni} dev far5 nud permanent`,
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
  await node.ipBatch([
    `route add ${POD_IP}/32 dev podlink`,
    `neigh replace ${POD_IP} lladdr ${podMac.pod} dev podlink nud permanent`,
  ]);
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
