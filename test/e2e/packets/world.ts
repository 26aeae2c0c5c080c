import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { applyOperations } from '../../../dataplane/apply.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { hostVethAlias, hostVethFallbackName } from '../../../dataplane/host-veth-name.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import { planMigration } from '../../../dataplane/migration.ts';
import type { EniNetwork, NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { unwirePod } from '../../../dataplane/unwire-pod.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { type Netns, openNetns } from '../../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import type { Child } from '../../support/child.ts';
import type { NetnsView } from '../../support/netns.ts';
import { createPodNetns, type PodNetns } from '../../support/pod-netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { AttachedEni } from '../../vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../vpc/vpc.ts';
import { askWho } from './ask.ts';

/** Port on which every Pod says who it is. */
export const WHO_PORT = 8080;

/** A Pod with one address of each family. */
type WorldPod = {
  readonly name: string;
  readonly eniId: string;
  readonly node: WorldNode;
  readonly netns: PodNetns;
  /** By family: `ips[4]`, `ips[6]`. */
  readonly ips: Readonly<Record<4 | 6, string>>;
  network: PodNetwork;
};

/** How a world differs from the plain one. */
export type WorldSpec = {
  readonly network?: Partial<NodeNetwork>;
  readonly sysctls?: Readonly<Record<string, number>>;
};

/** CIDR of the bridge Pods of node n1, which the VPC leads to its primary NIC. */
const BRIDGE_CIDR = '172.31.0.0/24';

const VPC_CIDRS = ['10.0.0.0/16', 'fd00:10::/32'];

/**
 * Opens the VPC in which layouts are tried: node n1 with two ENIs in two subnets, node n2 with two in one; two Pods on each of n1's,
 * one on each of n2's; all of it planned, applied and wired by the data plane alone.
 */
export async function openWorld(spec: WorldSpec = {}): Promise<World> {
  const vpc = await createTestVpc({
    vpcCidrs: VPC_CIDRS,
    subnets: [0, 1, 2].map((n) => ({ id: `s${n}`, cidr: `10.0.${n}.0/24`, cidrV6: `fd00:10:0:${n}::/64` })),
    nodes: ['n1', 'n2'].map((name) => ({ name, primarySubnet: 's0', ...(spec.sysctls && { sysctls: spec.sysctls }) })),
  });
  const world = new World(vpc);
  try {
    await world.start(spec);
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

/** A running world; the test closes it. */
export class World {
  readonly vpc: TestVpc;
  readonly pods: WorldPod[] = [];
  readonly nodes: WorldNode[] = [];
  #servers: Child[] = [];

  constructor(vpc: TestVpc) {
    this.vpc = vpc;
  }

  async start(spec: WorldSpec): Promise<void> {
    const layout = { n1: { 'eni-a': 's1', 'eni-b': 's2' }, n2: { 'eni-c': 's1', 'eni-d': 's1' } };
    for (const [name, enis] of Object.entries(layout)) {
      const attached: AttachedEni[] = [];
      for (const [eniId, subnetId] of Object.entries(enis))
        attached.push(await this.vpc.attachEni(name, { eniId, subnetId }));
      const node = new WorldNode(this.vpc, name, attached, spec.network ?? {});
      this.nodes.push(node);
      await node.reach();
    }
    for (const [name, eniId] of Object.entries({
      a1: 'eni-a',
      a2: 'eni-a',
      b1: 'eni-b',
      b2: 'eni-b',
      c1: 'eni-c',
      d1: 'eni-d',
    })) {
      await this.#addPod(name, eniId);
    }
    await Promise.all(this.pods.map((pod) => this.#serve(pod)));
  }

  /** @throws Error when there is none of that name */
  pod(name: string): WorldPod {
    const pod = this.pods.find((candidate) => candidate.name === name);
    if (pod === undefined) throw new Error(`no Pod ${name}`);
    return pod;
  }

  /** @throws Error when there is none of that name */
  node(name: string): WorldNode {
    const node = this.nodes.find((candidate) => candidate.name === name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  outside(family: 4 | 6): string {
    return family === 4 ? this.vpc.outside.ip : this.vpc.outside.ipv6;
  }

  /** Asks who answers at an address; "" when nobody does. */
  async ask(from: NetnsView, protocol: 'tcp' | 'udp', host: string, port: number): Promise<string> {
    return await askWho(from, protocol, host, port);
  }

  /** NICs by which packets of this source for this destination went through the router. */
  async waysOf(src: string, dst?: string): Promise<readonly string[]> {
    const log = await this.vpc.packetLog();
    const ways = log.filter((way) => way.src === src && (dst === undefined || way.dst === dst)).map((way) => way.via);
    return [...new Set(ways)].sort();
  }

  /** Starts a server that says `name` in a namespace. */
  async serve(netns: NetnsView, name: string, port = WHO_PORT): Promise<void> {
    const child = netns.start([process.execPath, join(import.meta.dirname, 'who-server.ts'), name, `${port}`]);
    this.#servers.push(child);
    await waitUntil(() => child.stdout.includes('tcp') && child.stdout.includes('udp'), {
      what: `server ${name}`,
      explain: () => child.stderr,
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop('SIGTERM', 1_000)));
    for (const node of this.nodes) node.close();
    await this.vpc.close();
  }

  async #addPod(name: string, eniId: string): Promise<void> {
    const node = this.nodes.find((candidate) => candidate.enis.some((eni) => eni.eniId === eniId));
    const eni = node?.enis.find((candidate) => candidate.eniId === eniId);
    if (node === undefined || eni === undefined) throw new Error(`no node has ${eniId}`);
    const { ip, ipv6 } = await this.vpc.assignDual(eniId);
    const netns = await createPodNetns(`${this.vpc.prefix}${name}`);
    const pod: WorldPod = { name, eniId, node, netns, ips: { 4: ip, 6: ipv6 }, network: unwiredPod(eni, [ip, ipv6]) };
    node.wire(pod);
    this.pods.push(pod);
  }

  #serve(pod: WorldPod): Promise<void> {
    return this.serve(pod.netns, pod.name);
  }
}

/** One node of a world and the data plane's hold on it. */
class WorldNode {
  readonly name: string;
  readonly netns: NetnsView;
  readonly primary: Readonly<Record<4 | 6, string>>;
  readonly kernel: Kernel;
  readonly enis: readonly EniNetwork[];
  network: NodeNetwork;
  readonly pods: WorldPod[] = [];
  #held: Netns;

  constructor(vpc: TestVpc, name: string, enis: readonly AttachedEni[], changes: Partial<NodeNetwork>) {
    const { netns, primary } = vpc.node(name);
    this.name = name;
    this.netns = netns;
    this.primary = { 4: primary.primaryIp, 6: primary.primaryIpv6 ?? '' };
    this.#held = openNetns(netns.path);
    const rtnetlink = openRtnetlinkIn(this.#held);
    this.kernel = { rtnetlink, sysctl: openSysctl(this.#held), nft: openNft({ netnsPath: netns.path }) };
    const indexOf = (ifname: string) => rtnetlink.link.get({ ifname })?.ifindex ?? 0;
    this.enis = enis.map((eni, at) => eniNetwork(eni, indexOf(eni.ifname), at + 1));
    this.network = {
      ruleMode: 'compact',
      eniMarkMask: 0x00ff0000,
      rpFilterMode: 'loose',
      egress: 'eni',
      primary: { ifindex: indexOf('eth0'), ifname: 'eth0', addresses: [primary.primaryIp, primary.primaryIpv6 ?? ''] },
      podCidrs: name === 'n1' ? [BRIDGE_CIDR] : [],
      families: [4, 6],
      nodePort: true,
      vpcCidrs: VPC_CIDRS,
      ...changes,
    };
  }

  /** Brings the kernel to the plan. */
  async reach(): Promise<void> {
    const desired = planNode(
      this.network,
      this.enis,
      this.pods.map(({ network }) => network),
    );
    await applyOperations(this.kernel, diffHost(desired, await observeHost(this.kernel, desired)).operations);
  }

  /** Changes the rule mode stage by stage; `pause` runs after each. Returns what each stage was. */
  async migrate(ruleMode: NodeNetwork['ruleMode'], pause: () => Promise<void>): Promise<readonly string[]> {
    this.network = { ...this.network, ruleMode };
    const desired = planNode(
      this.network,
      this.enis,
      this.pods.map(({ network }) => network),
    );
    const steps = planMigration(desired, await observeHost(this.kernel, desired));
    for (const step of steps) {
      await applyOperations(this.kernel, step.operations);
      await pause();
    }
    return steps.map(({ what }) => what);
  }

  wire(pod: WorldPod): void {
    using podNetns = openNetns(pod.netns.path);
    const { network } = pod;
    const fallbackName = hostVethFallbackName(network.key);
    const { hostIfindex, hostName } = wirePod(this.kernel, podNetns, {
      node: this.network,
      pod: network,
      fallbackName,
    });
    pod.network = { ...network, hostVeth: { ...network.hostVeth, name: hostName, ifindex: hostIfindex } };
    this.pods.push(pod);
  }

  async unwire(pod: WorldPod): Promise<void> {
    this.pods.splice(this.pods.indexOf(pod), 1);
    await unwirePod(this.kernel, this.network, pod.network).finished;
  }

  close(): void {
    this.kernel.rtnetlink.close();
    this.#held.close();
  }
}

/** A Pod of these addresses that nobody has wired yet. */
function unwiredPod(eni: EniNetwork, ips: readonly string[]): PodNetwork {
  const key = { containerId: randomBytes(8).toString('hex'), ifName: 'eth0' };
  return {
    key,
    kind: 'route-eni',
    ips,
    eniTable: eni.table,
    hostVeth: { name: hostVethFallbackName(key), mac: randomMac() },
    podVeth: { name: 'eth0', mac: randomMac() },
    mtu: 1500,
    alias: hostVethAlias(key),
  };
}

function eniNetwork(eni: AttachedEni, ifindex: number, slot: number): EniNetwork {
  const { eniId, mac, ifname, primaryIp, gateway, primaryIpv6, gatewayV6 } = eni;
  const ipv6 = primaryIpv6 === undefined || gatewayV6 === undefined ? [] : [{ ip: primaryIpv6, gateway: gatewayV6 }];
  const addresses = [{ ip: primaryIp, gateway }, ...ipv6];
  return { eniId, mac, ifindex, ifname, mtu: 1500, table: 4000 + ifindex, slot, addresses };
}

function randomMac(): string {
  return `02:${[...randomBytes(5)].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
}
