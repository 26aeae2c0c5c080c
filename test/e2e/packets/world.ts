import type { NodeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import { podCidrOf } from '../../../dataplane/pod-cidr.ts';
import type { Child } from '../../../sim/support/child.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { createPodNetns, type PodNetns } from '../../support/pod-netns.ts';
import { askWho } from './ask.ts';
import { startWhoServers } from './serve.ts';
import { unwiredPod, WorldNode } from './world-node.ts';

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
      const node = new WorldNode(this.vpc, name, attached, {
        podCidrs: name === 'n1' ? [podCidrOf(BRIDGE_CIDR)] : [],
        ...spec.network,
      });
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
    // Filters of the fast path come to a Pod's link after it was wired.
    if (spec.network?.fastPath !== undefined) for (const node of this.nodes) await node.reach();
    this.#servers.push(await startWhoServers(WHO_PORT, this.pods));
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

  /** Makes a namespace for another Pod, which the test wires. */
  async makeSandbox(name: string): Promise<PodNetns> {
    return await createPodNetns(`${this.vpc.prefix}${name}`);
  }

  /** NICs by which packets of this source for this destination went through the router. */
  async waysOf(src: string, dst?: string): Promise<readonly string[]> {
    const log = await this.vpc.packetLog();
    const ways = log.filter((way) => way.src === src && (dst === undefined || way.dst === dst)).map((way) => way.via);
    return [...new Set(ways)].sort();
  }

  /** Starts a server that says `name` in a namespace. */
  async serve(netns: NetnsView, name: string, port = WHO_PORT): Promise<void> {
    this.#servers.push(await startWhoServers(port, [{ netns, name }]));
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
}
