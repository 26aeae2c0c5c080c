import { bridgePodMac } from '../../../dataplane/bridge-pod-mac.ts';
import { sideName } from '../../../dataplane/host-veth-name.ts';
import type { GrWiring, NodeNetwork, PodNetwork, RuleMode } from '../../../dataplane/network.ts';
import { BRIDGE_IFINDEX, BRIDGE_NAME, DIRECT_LINK_GROUP } from '../../../dataplane/numbers.ts';
import { blockOf, podCidrOf } from '../../../dataplane/pod-cidr.ts';
import type { Child } from '../../../sim/support/child.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { createPodNetns } from '../../support/pod-netns.ts';
import { startWhoServers } from './serve.ts';
import { unwiredPod, WorldNode } from './world-node.ts';

/** Port on which everything in the world says who it is. */
export const WHO_PORT = 8080;

/** What a host of the world is; GlobalRoute Pods by their wiring. */
type PartyKind = 'bridge' | 'routed' | 'eni' | 'exclusive' | 'node' | 'outside';

/** One that asks and is asked. */
export type Party = {
  readonly name: string;
  readonly kind: PartyKind;
  readonly netns: NetnsView;
  readonly ip: string;
  /** Name of its node; '' outside. */
  readonly node: string;
  readonly ruleMode: RuleMode | '';
};

/** The Pods of a node, by name: `{ g1: 'bridge', e1: 'eni' }`. */
export type HybridNodeSpec = {
  readonly ruleMode: RuleMode;
  readonly wiring: GrWiring;
  readonly pods: Readonly<Record<string, Exclude<PartyKind, 'node' | 'outside'>>>;
};

/** Destinations to which GlobalRoute Pods keep their addresses; as the agent has it without a configuration. */
const EXEMPT = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'];
/** ClusterIPs. */
const SERVICE_CIDR = '10.96.0.0/16';

/** Opens a VPC with nodes of Pods of each network, GlobalRoute blocks led to them, and a server in everything. */
export async function openHybridWorld(
  specs: Readonly<Record<string, HybridNodeSpec>>,
  changes: Pick<NodeNetwork, 'fastPath'> = {},
): Promise<HybridWorld> {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [0, 1, 2].map((n) => ({ id: `s${n}`, cidr: `10.0.${n}.0/24` })),
    nodes: Object.keys(specs).map((name) => ({ name, primarySubnet: 's0' })),
  });
  const world = new HybridWorld(vpc);
  try {
    await world.start(specs, changes);
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

/** A running world; the test closes it. */
export class HybridWorld {
  readonly vpc: TestVpc;
  readonly parties: Party[] = [];
  readonly nodes: WorldNode[] = [];
  #server: Child | undefined;

  constructor(vpc: TestVpc) {
    this.vpc = vpc;
  }

  async start(specs: Readonly<Record<string, HybridNodeSpec>>, changes: Pick<NodeNetwork, 'fastPath'>): Promise<void> {
    const { netns, ip } = this.vpc.outside;
    this.parties.push({ name: 'outside', kind: 'outside', netns, ip, node: '', ruleMode: '' });
    for (const [at, [name, spec]] of Object.entries(specs).entries()) await this.#addNode(at + 1, name, spec, changes);
    // Filters of the fast path come to a Pod's link after it was wired.
    if (changes.fastPath !== undefined) for (const node of this.nodes) await node.reach();
    const servers = this.parties.map(({ kind, ...one }) => ({
      ...one,
      // An answer to one of its own Pods would leave with the address of the interface that leads there.
      ...(kind === 'node' && { address: one.ip }),
    }));
    this.#server = await startWhoServers(WHO_PORT, servers);
  }

  /** @throws Error when there is none of that name */
  party(name: string): Party {
    const party = this.parties.find((one) => one.name === name);
    if (party === undefined) throw new Error(`nobody is called ${name}`);
    return party;
  }

  /** @throws Error when there is none of that name */
  node(name: string): WorldNode {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  /** The address that `to` finds a packet of `from` to have. @see docs/hybrid.md */
  sourceOf(from: Party, to: Party): string {
    const isLocal = from.node === to.node;
    if (from.kind === 'node' && isLocal && to.kind === 'bridge') return gatewayOf(this.node(from.node));
    const isGr = from.kind === 'bridge' || from.kind === 'routed';
    return isGr && to.kind === 'outside' ? this.party(from.node).ip : from.ip;
  }

  async close(): Promise<void> {
    await this.#server?.stop('SIGTERM', 1_000);
    for (const node of this.nodes) node.close();
    await this.vpc.close();
  }

  async #addNode(
    serial: number,
    name: string,
    { ruleMode, wiring, pods }: HybridNodeSpec,
    changes: Pick<NodeNetwork, 'fastPath'>,
  ): Promise<void> {
    const { netns, primary } = this.vpc.node(name);
    const block = podCidrOf(`172.31.${serial}.0/26`);
    const kinds = Object.values(pods);
    const enis = kinds.includes('eni')
      ? [await this.vpc.attachEni(name, { eniId: `eni-${name}`, subnetId: 's1' })]
      : [];
    const hasGr = kinds.some((kind) => kind === 'bridge' || kind === 'routed');
    const bridge = { name: BRIDGE_NAME, ifindex: BRIDGE_IFINDEX, isPresent: false, mtu: 1500, wiring };
    const node = new WorldNode(this.vpc, name, enis, {
      ...{ ruleMode, families: [4], hasDirect: kinds.includes('exclusive'), serviceCidrs: [SERVICE_CIDR] },
      ...changes,
      ...(hasGr ? { podCidrs: [block], bridge: { ...bridge, masquerade: { exempt: EXEMPT } } } : {}),
    } satisfies Partial<NodeNetwork>);
    this.nodes.push(node);
    await node.reach();
    if (hasGr) await this.vpc.addGlobalRoute({ cidr: block.cidr, nodeIp: primary.primaryIp });
    this.parties.push({ name, kind: 'node', netns, ip: primary.primaryIp, node: name, ruleMode });
    for (const [pod, kind] of Object.entries(pods)) await this.#addPod(node, pod, kind);
  }

  async #addPod(node: WorldNode, name: string, kind: PartyKind): Promise<void> {
    const netns = await createPodNetns(`${this.vpc.prefix}${name}`);
    const network = await this.#networkOf(node, name, kind);
    // On a node whose new Pods are routed nothing else has made the bridge.
    if (kind === 'bridge') await node.reach([network]);
    node.wire({ netns, network });
    const { ruleMode } = node.network;
    this.parties.push({ name, kind, netns, ip: network.ips[0] ?? '', node: node.name, ruleMode });
  }

  async #networkOf(node: WorldNode, name: string, kind: PartyKind): Promise<PodNetwork> {
    if (kind === 'eni') {
      const [eni] = node.enis;
      if (eni === undefined) throw new Error(`${node.name} has no ENI`);
      return unwiredPod(eni, [await this.vpc.assignIp(eni.eniId)]);
    }
    if (kind === 'exclusive') return await this.#exclusive(node, name);
    const [block] = node.network.podCidrs;
    if (block === undefined || (kind !== 'bridge' && kind !== 'routed')) throw new Error(`${name} is no Pod`);
    const ip = block.cidr.replace(/\.0\/.*/, `.${10 + node.pods.length}`);
    const { eniTable: _none, ...pod } = unwiredPod({ table: 0 }, [ip]);
    const podVeth = kind === 'bridge' ? { ...pod.podVeth, mac: bridgePodMac(ip) } : pod.podVeth;
    return { ...pod, podVeth, kind: 'bridge', wiring: kind, block: blockOf(block) };
  }

  async #exclusive(node: WorldNode, name: string): Promise<PodNetwork> {
    const eni = await this.vpc.attachEni(node.name, { eniId: `eni-${name}`, subnetId: 's2', isDirect: true });
    const pod = unwiredPod({ table: DIRECT_LINK_GROUP }, [eni.primaryIp]);
    const { mac, primaryIp: ip, gateway, ifname: hostName } = eni;
    return {
      ...{ ...pod, kind: 'direct-eni', podVeth: { ...pod.podVeth, name: sideName('eth0') } },
      nic: { mac, hostName, mtu: 1500, addresses: [{ ip, gateway, prefixLength: 24 }] },
    };
  }
}

/** Address of a node's bridge. */
export function gatewayOf(node: WorldNode): string {
  return node.network.podCidrs[0]?.gateway ?? '';
}
