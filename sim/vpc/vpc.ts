import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { NetnsView } from '../support/netns.ts';
import { run } from '../support/run.ts';
import { cleanupStale, deleteNetnsNames, listNetnsNames, type RunPrefix, reservePrefix } from '../support/run-names.ts';
import type { SecurityRule } from './api/model/security-group-book.ts';
import { LoadBalancing } from './clb/load-balancing.ts';
import { type GlobalRoute, GlobalRoutes } from './global-routes.ts';
import type { AssignedIp, AttachedEni, EniClaim, Nic } from './nic.ts';
import { describeNic, NicBook } from './nic-book.ts';
import { NODE_SYSCTLS, primaryLines } from './node.ts';
import { createOutsideHost, type OutsideHost, outsideRouterLines } from './outside.ts';
import {
  type DroppedPackets,
  describeRepeated,
  type PassedPackets,
  type RepeatedPackets,
  readDropped,
  readPassed,
  readRepeated,
  resetPacketLog,
} from './packet-log.ts';
import {
  addIpLines,
  plugLines,
  portElements,
  portLines,
  ROUTER_RULESET,
  ROUTER_SYSCTLS,
  removeIpLines,
} from './router.ts';
import { SecurityGroups } from './security-groups.ts';
import type { Family, SubnetSpec } from './subnet.ts';
import { nodeEniConfigYaml } from './supply.ts';

/** A node of the small VPC. */
type NodeSpec = {
  readonly name: string;
  readonly primarySubnet: string;
  /** Sysctls that the node's image would have set; slashes part the names. */
  readonly sysctls?: Readonly<Record<string, string | number>>;
};

/** What the small VPC consists of when it comes up. */
export type TestVpcSpec = {
  /** Start of every name on this machine; default 'tke-test-'. A random part follows. */
  readonly prefix?: string;
  readonly vpcCidrs: readonly string[];
  readonly subnets: readonly SubnetSpec[];
  readonly nodes: readonly NodeSpec[];
  /** Bytes; default 1500. */
  readonly mtu?: number;
};

/** What may differ from one ENI to the next. */
type AttachOptions = {
  readonly eniId: string;
  readonly subnetId: string;
  readonly mtu?: number;
  /** What it is to be called and where it is to be reached, where the cloud has chosen; else the next free ones. */
  readonly mac?: string;
  readonly primaryIp?: string;
  /** A Pod is to get it as a whole. */
  readonly isDirect?: boolean;
};

/** A node as tests see it from outside. */
export type TestNode = {
  readonly name: string;
  readonly netns: NetnsView;
  readonly primary: AttachedEni;
};

/**
 * Brings up a small VPC in network namespaces of its own: a router, an outside host, and nodes with their primary
 * NIC. The caller closes it; whatever a crashed run with the same prefix left behind is removed first.
 * @throws RunError when the kernel or a tool refuses; nothing is left behind then.
 */
export async function createTestVpc(spec: TestVpcSpec): Promise<TestVpc> {
  const stem = spec.prefix ?? 'tke-test-';
  await cleanupStale(stem);
  const vpc = new TestVpc(spec, reservePrefix(stem));
  try {
    await vpc.start();
  } catch (error) {
    await vpc.close();
    throw error;
  }
  return vpc;
}

/** A running small VPC. Owns its network namespaces. Made by `createTestVpc`. */
export class TestVpc {
  readonly prefix: string;
  readonly vpcCidrs: readonly string[];
  readonly router: NetnsView;
  readonly outside: OutsideHost;
  readonly loadBalancing: LoadBalancing;
  #reserved: RunPrefix;
  #mtu: number;
  #nodeSpecs: readonly NodeSpec[];
  #book: NicBook;
  #globalRoutes: GlobalRoutes;
  readonly #securityGroups: SecurityGroups;
  #mayRepeat = false;
  #supplyEpoch = 0;

  constructor(spec: TestVpcSpec, reserved: RunPrefix) {
    this.#reserved = reserved;
    this.prefix = reserved.prefix;
    this.vpcCidrs = spec.vpcCidrs;
    this.router = new NetnsView(`${this.prefix}router`);
    this.outside = createOutsideHost(`${this.prefix}outside`);
    this.#securityGroups = new SecurityGroups(this.router);
    this.loadBalancing = new LoadBalancing(this.router, this.#securityGroups, this.prefix);
    this.#mtu = spec.mtu ?? 1500;
    this.#book = new NicBook(spec.subnets);
    this.#globalRoutes = new GlobalRoutes(this.router, (ip) => this.#book.ownerOf(ip));
    this.#nodeSpecs = spec.nodes;
  }

  /** Makes the namespaces and plugs the primary NICs in. Called once, by `createTestVpc`. */
  async start(): Promise<void> {
    const views = [this.router, this.outside.netns, ...this.#nodeSpecs.map((spec) => this.#netnsOf(spec.name))];
    await ipBatch(views.map((view) => `netns add ${view.name}`));
    const primaries = this.#nodeSpecs.map((spec) =>
      this.#order({ eniId: primaryId(spec.name), subnetId: spec.primarySubnet }, spec.name, true),
    );
    await Promise.all([
      // Before the links: a port inherits the strict defaults at birth.
      this.router.sysctl(ROUTER_SYSCTLS),
      this.router.nft(ROUTER_RULESET + primaries.map((nic) => portElements(nic, 'add')).join('')),
      ...this.#nodeSpecs.map((spec) => this.#netnsOf(spec.name).sysctl({ ...NODE_SYSCTLS, ...spec.sysctls })),
    ]);
    await ipBatch([
      ...this.outside.linkLines(this.router),
      ...primaries.flatMap((nic) => plugLines(nic, this.router, this.#netnsOf(nic.node), this.#portSerial(nic))),
    ]);
    await Promise.all([
      this.router.ipBatch([
        'link set lo up',
        ...outsideRouterLines(),
        ...this.vpcCidrs.map((cidr) => `route add unreachable ${cidr}`),
        ...primaries.flatMap(portLines),
      ]),
      this.outside.start(),
      ...primaries.map((nic) => this.#netnsOf(nic.node).ipBatch(primaryLines(nic))),
    ]);
  }

  /** The node of that name. @throws Error when there is none */
  node(name: string): TestNode {
    return { name, netns: this.#netnsOf(name), primary: describeNic(this.#book.get(primaryId(name)), 'eth0') };
  }

  /** Names of all nodes, in the order of the spec. */
  get nodeNames(): readonly string[] {
    return this.#nodeSpecs.map((spec) => spec.name);
  }

  /**
   * Plugs a new ENI into a node: it appears as the next free ethN, down, without an address. On a node without power it
   * has no link until `replug`.
   */
  async attachEni(nodeName: string, options: AttachOptions): Promise<AttachedEni> {
    const nic = this.#order(options, nodeName, false);
    try {
      await this.#plug(nic);
    } catch (error) {
      if (!(await this.#isPowered(nodeName))) return describeNic(nic, '');
      this.#book.remove(nic);
      throw error;
    }
    return describeNic(nic, await this.#ifnameOf(nic));
  }

  /** Unplugs an ENI, with every address it had. An ENI whose link is gone already is no error. */
  async detachEni(eniId: string): Promise<void> {
    const nic = this.#book.get(eniId);
    await this.#unplug(nic);
    await this.router.nft(portElements(nic, 'delete'));
    await this.#securityGroups.set(nic.port, undefined);
    this.#book.remove(nic);
  }

  /**
   * Plugs a NIC in again with the same MAC, as a real one comes back when the namespace that held it dies (a veth dies
   * with it). It appears in the node as the next free ethN; its addresses are led to it again.
   */
  async replug(eniId: string): Promise<AttachedEni> {
    const nic = this.#book.get(eniId);
    await this.#unplug(nic);
    await this.#plug(nic);
    if (nic.isPrimary) await this.#netnsOf(nic.node).ipBatch(primaryLines(nic));
    return describeNic(nic, await this.#ifnameOf(nic));
  }

  /** ENIs of a node whose link has died, with the namespace that it was in; `replug` brings one back. */
  async deadEnis(nodeName: string): Promise<readonly string[]> {
    const ports = new Set((await this.router.ipJson('link')).map((link) => link['ifname']));
    const nics = this.#book.enisOf(nodeName).filter(({ port }) => !ports.has(port));
    return nics.map(({ eniId }) => eniId);
  }

  /** Assigns one secondary address to an ENI and returns it. `wanted` picks a particular one. */
  async assignIp(eniId: string, family: Family = 4, wanted?: string): Promise<string> {
    const ip = this.#book.assign(this.#book.get(eniId), family, wanted);
    await this.#route(this.#book.get(eniId), addIpLines(this.#book.get(eniId), ip));
    return ip;
  }

  /** Assigns `count` secondary addresses to an ENI at once. */
  async assignIps(eniId: string, count: number, family: Family = 4): Promise<readonly string[]> {
    const nic = this.#book.get(eniId);
    const ips = Array.from({ length: count }, () => this.#book.assign(nic, family));
    await this.router.ipBatch(ips.flatMap((ip) => addIpLines(nic, ip)));
    return ips;
  }

  /** Assigns an IPv4 and an IPv6 address that belong to one dual-stack Pod. */
  async assignDual(eniId: string): Promise<{ readonly ip: string; readonly ipv6: string }> {
    const nic = this.#book.get(eniId);
    const ip = this.#book.assign(nic, 4);
    const ipv6 = this.#book.assign(nic, 6);
    this.#book.amend(nic, ip, { pairedIp: ipv6 });
    this.#book.amend(nic, ipv6, { pairedIp: ip });
    await this.router.ipBatch([...addIpLines(nic, ip), ...addIpLines(nic, ipv6)]);
    return { ip, ipv6 };
  }

  /** Leads a network to a node by a route of the whole VPC, from now on by no other. Idempotent. */
  addGlobalRoute({ cidr, nodeIp }: GlobalRoute): Promise<void> {
    return this.setGlobalRoutes(cidr, [nodeIp]);
  }

  /** Ends the route to a network; one that is not there is no error. */
  removeGlobalRoute(cidr: string): Promise<void> {
    return this.setGlobalRoutes(cidr, []);
  }

  /** Leads a network to the nodes with these addresses and to no others, in one step. Several share the packets. */
  setGlobalRoutes(cidr: string, nodeIps: readonly string[]): Promise<void> {
    return this.#globalRoutes.set(cidr, nodeIps);
  }

  /** Has an ENI, or a primary NIC by its id, admit what these rules of security groups say; undefined: everyone. */
  setAdmission(eniId: string, rules: readonly SecurityRule[] | undefined): Promise<void> {
    return this.#securityGroups.set(this.#book.get(eniId).port, rules);
  }

  /** Marks a whole ENI as that of the Pods of one name; undefined takes the mark off. */
  markEni(eniId: string, claim: EniClaim | undefined): void {
    const nic = this.#book.get(eniId);
    if (claim === undefined) delete nic.claim;
    else nic.claim = claim;
  }

  /** Marks an address as about to be taken back; packets still flow. */
  announceRelease(eniId: string, ip: string): void {
    this.#book.amend(this.#book.get(eniId), ip, { isReleasing: true });
  }

  /** Takes an address back from an ENI: the router leads it nowhere from now on. */
  async unassignIp(eniId: string, ip: string): Promise<void> {
    const nic = this.#book.get(eniId);
    this.#book.unassign(nic, ip);
    await this.#route(nic, removeIpLines(nic, ip));
  }

  /** Addresses assigned to an ENI, primary ones not counted. */
  assignedIps(eniId: string): readonly AssignedIp[] {
    return [...this.#book.get(eniId).assigned.values()];
  }

  /** ENIs of a node without the primary NIC, in the order of attaching. */
  enisOf(nodeName: string): readonly string[] {
    return this.#book.enisOf(nodeName).map((nic) => nic.eniId);
  }

  /** An attached ENI as it is now; its interface name may have changed by `replug`. @throws Error when its link is gone */
  async eni(eniId: string): Promise<AttachedEni> {
    const nic = this.#book.get(eniId);
    return describeNic(nic, await this.#ifnameOf(nic));
  }

  /** As `eni`, of one that a Pod may have as a whole: its interface has no name in the node then. */
  directEni(eniId: string): AttachedEni {
    return describeNic(this.#book.get(eniId), '');
  }

  /** The ENI that an address is led to, primary NICs included; undefined when none. */
  eniOf(ip: string): string | undefined {
    return this.#book.ownerOf(ip)?.eniId;
  }

  /** The NodeENIConfig of a node as YAML. Each call has a higher supply epoch than the one before. */
  nodeEniConfig(nodeName: string): string {
    this.#supplyEpoch += 1;
    return nodeEniConfigYaml(nodeName, this.#book.enisOf(nodeName), this.#supplyEpoch);
  }

  /** Writes a node's NodeENIConfig to a file, whole or not at all. */
  writeSupply(nodeName: string, path: string): void {
    writeFileAtomically(path, this.nodeEniConfig(nodeName));
  }

  /** Packets that went through the router since the last reset, by ENI. */
  packetLog(): Promise<readonly PassedPackets[]> {
    return readPassed(this.router, (port) => this.#book.nameOfPort(port));
  }

  /** Packets that the router refused since the last reset, by ENI. */
  droppedPackets(): Promise<readonly DroppedPackets[]> {
    return readDropped(this.router, (port) => this.#book.nameOfPort(port));
  }

  /** Forgets all packet counts. */
  resetPacketLog(): Promise<void> {
    return resetPacketLog(this.router);
  }

  /** Packets that passed the router more than once since it came up, whatever was reset. Call before `close`. */
  repeatedPackets(): Promise<readonly RepeatedPackets[]> {
    return readRepeated(this.router, (port) => this.#book.nameOfPort(port));
  }

  /** `close` accepts packets that passed more than once: a test has broken the network on purpose. */
  allowRepeatedPackets(): void {
    this.#mayRepeat = true;
  }

  /**
   * Removes every namespace of this VPC, those made under its prefix by others included. Idempotent.
   * @throws Error after that, when a packet passed the router twice: some node sent back what it was given
   */
  async close(): Promise<void> {
    await this.loadBalancing.close();
    const names = (await listNetnsNames()).filter((name) => name.startsWith(this.prefix));
    const repeated = names.includes(this.router.name) && !this.#mayRepeat ? await this.repeatedPackets() : [];
    await deleteNetnsNames(names);
    this.#reserved.release();
    if (repeated.length > 0) throw new Error(`packets passed the router more than once: ${describeRepeated(repeated)}`);
  }

  async #plug(nic: Nic): Promise<void> {
    await Promise.all([
      ipBatch(plugLines(nic, this.router, this.#netnsOf(nic.node), this.#portSerial(nic))),
      this.router.nft(portElements(nic, 'add')),
    ]);
    await this.router.ipBatch([...portLines(nic), ...this.#globalRoutes.linesOf(nic)]);
  }

  /** Changes routes to an ENI. One whose link died with the power of its node has none: `replug` makes them all. */
  async #route(nic: Nic, lines: readonly string[]): Promise<void> {
    try {
      await this.router.ipBatch(lines);
    } catch (error) {
      if (await this.#isPowered(nic.node)) throw error;
    }
  }

  async #isPowered(node: string): Promise<boolean> {
    return (await listNetnsNames()).includes(this.#netnsOf(node).name);
  }

  async #unplug(nic: Nic): Promise<void> {
    // Exit status is not judged: the link may have died with the namespace of its other end.
    await this.router.tryRun(['ip', 'link', 'delete', nic.port]);
  }

  #order(options: AttachOptions, node: string, isPrimary: boolean): Nic {
    // Throws for a node that does not exist, before anything is entered.
    this.#netnsOf(node);
    return this.#book.add({ ...options, node, mtu: options.mtu ?? this.#mtu, isPrimary });
  }

  #netnsOf(node: string): NetnsView {
    if (!this.nodeNames.includes(node)) throw new Error(`${node}: no such node in this VPC`);
    return new NetnsView(`${this.prefix}${node}`);
  }

  #portSerial(nic: Nic): number {
    return Number(nic.port.slice(1));
  }

  async #ifnameOf(nic: Nic): Promise<string> {
    const links = await this.#netnsOf(nic.node).ipJson('link');
    const link = links.find((candidate) => candidate['address'] === nic.mac);
    if (link === undefined) throw new Error(`${nic.eniId}: no link with MAC ${nic.mac} in ${nic.node}`);
    return String(link['ifname']);
  }
}

function primaryId(node: string): string {
  return `${node}/eth0`;
}

async function ipBatch(lines: readonly string[]): Promise<void> {
  await run(['ip', '-batch', '-'], { input: `${lines.join('\n')}\n` });
}
