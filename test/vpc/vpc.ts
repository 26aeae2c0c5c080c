import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { NetnsView } from '../support/netns.ts';
import { run } from '../support/run.ts';
import { cleanupStale, deleteNetnsNames, listNetnsNames, type RunPrefix, reservePrefix } from '../support/run-names.ts';
import { type AssignedIp, type AttachedEni, type Nic, nicMac } from './nic.ts';
import { createOutsideHost, type OutsideHost, outsideRouterLines } from './outside.ts';
import { type DroppedPackets, type PassedPackets, readDropped, readPassed, resetPacketLog } from './packet-log.ts';
import {
  addIpLines,
  plugLines,
  portElements,
  portLines,
  ROUTER_RULESET,
  ROUTER_SYSCTLS,
  removeIpLines,
} from './router.ts';
import { type Family, Subnet, type SubnetSpec } from './subnet.ts';
import { nodeEniConfigYaml } from './supply.ts';

/** A node of the small VPC. */
export type NodeSpec = {
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
export type AttachOptions = { readonly eniId: string; readonly subnetId: string; readonly mtu?: number };

/** A node as tests see it from outside. */
export type TestNode = {
  readonly name: string;
  readonly netns: NetnsView;
  readonly primary: AttachedEni;
};

/** Sysctls of a freshly booted node, before any agent came. */
const NODE_SYSCTLS = {
  'net/ipv4/ip_forward': 0,
  'net/ipv4/conf/all/rp_filter': 0,
  'net/ipv4/conf/default/rp_filter': 1,
  'net/ipv6/conf/default/accept_dad': 0,
  'net/ipv6/conf/all/forwarding': 0,
} as const;

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
  #reserved: RunPrefix;
  #mtu: number;
  #subnets: ReadonlyMap<string, Subnet>;
  #nodeSpecs: readonly NodeSpec[];
  #nics = new Map<string, Nic>();
  #serial = 0;
  #assignments = 0;
  #supplyEpoch = 0;

  constructor(spec: TestVpcSpec, reserved: RunPrefix) {
    this.#reserved = reserved;
    this.prefix = reserved.prefix;
    this.vpcCidrs = spec.vpcCidrs;
    this.router = new NetnsView(`${this.prefix}router`);
    this.outside = createOutsideHost(`${this.prefix}outside`);
    this.#mtu = spec.mtu ?? 1500;
    this.#subnets = new Map(spec.subnets.map((subnet) => [subnet.id, new Subnet(subnet)]));
    this.#nodeSpecs = spec.nodes;
  }

  /** Makes the namespaces and plugs the primary NICs in. Called once, by `createTestVpc`. */
  async start(): Promise<void> {
    const views = [this.router, this.outside.netns, ...this.#nodeSpecs.map((spec) => this.#netnsOf(spec.name))];
    await ipBatch(views.map((view) => `netns add ${view.name}`));
    const primaries = this.#nodeSpecs.map((spec) =>
      this.#newNic({ eniId: primaryId(spec.name), subnetId: spec.primarySubnet }, spec.name, true),
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
    return { name, netns: this.#netnsOf(name), primary: this.#describe(this.#nic(primaryId(name)), 'eth0') };
  }

  /** Names of all nodes, in the order of the spec. */
  get nodeNames(): readonly string[] {
    return this.#nodeSpecs.map((spec) => spec.name);
  }

  /** Plugs a new ENI into a node: it appears as the next free ethN, down, without an address. */
  async attachEni(nodeName: string, options: AttachOptions): Promise<AttachedEni> {
    const nic = this.#newNic(options, nodeName, false);
    try {
      await this.#plug(nic);
    } catch (error) {
      this.#forget(nic);
      throw error;
    }
    return this.#describe(nic, await this.#ifnameOf(nic));
  }

  /** Unplugs an ENI, with every address it had. An ENI whose link is gone already is no error. */
  async detachEni(eniId: string): Promise<void> {
    const nic = this.#nic(eniId);
    await this.#unplug(nic);
    await this.router.nft(portElements(nic, 'delete'));
    this.#forget(nic);
  }

  /**
   * Plugs a NIC in again with the same MAC, as a real one comes back when the namespace that held it dies (a veth dies
   * with it). It appears in the node as the next free ethN; its addresses are led to it again.
   */
  async replug(eniId: string): Promise<AttachedEni> {
    const nic = this.#nic(eniId);
    await this.#unplug(nic);
    await this.#plug(nic);
    if (nic.isPrimary) await this.#netnsOf(nic.node).ipBatch(primaryLines(nic));
    return this.#describe(nic, await this.#ifnameOf(nic));
  }

  /** Assigns one secondary address to an ENI and returns it. `wanted` picks a particular one. */
  async assignIp(eniId: string, family: Family = 4, wanted?: string): Promise<string> {
    const ip = this.#record(this.#nic(eniId), family, wanted);
    await this.router.ipBatch(addIpLines(this.#nic(eniId), ip));
    return ip;
  }

  /** Assigns `count` secondary addresses to an ENI at once. */
  async assignIps(eniId: string, count: number, family: Family = 4): Promise<readonly string[]> {
    const nic = this.#nic(eniId);
    const ips = Array.from({ length: count }, () => this.#record(nic, family));
    await this.router.ipBatch(ips.flatMap((ip) => addIpLines(nic, ip)));
    return ips;
  }

  /** Assigns an IPv4 and an IPv6 address that belong to one dual-stack Pod. */
  async assignDual(eniId: string): Promise<{ readonly ip: string; readonly ipv6: string }> {
    const nic = this.#nic(eniId);
    const ip = this.#record(nic, 4);
    const ipv6 = this.#record(nic, 6);
    this.#amend(nic, ip, { pairedIp: ipv6 });
    this.#amend(nic, ipv6, { pairedIp: ip });
    await this.router.ipBatch([...addIpLines(nic, ip), ...addIpLines(nic, ipv6)]);
    return { ip, ipv6 };
  }

  /** Marks an address as about to be taken back; packets still flow. */
  announceRelease(eniId: string, ip: string): void {
    this.#amend(this.#nic(eniId), ip, { isReleasing: true });
  }

  /** Takes an address back from an ENI: the router leads it nowhere from now on. */
  async unassignIp(eniId: string, ip: string): Promise<void> {
    const nic = this.#nic(eniId);
    if (!nic.assigned.delete(ip)) throw new Error(`${eniId}: ${ip} is not assigned to it`);
    nic.subnet.release(ip);
    await this.router.ipBatch(removeIpLines(nic, ip));
  }

  /** Addresses assigned to an ENI, primary ones not counted. */
  assignedIps(eniId: string): readonly AssignedIp[] {
    return [...this.#nic(eniId).assigned.values()];
  }

  /** ENIs of a node without the primary NIC, in the order of attaching. */
  enisOf(nodeName: string): readonly string[] {
    return [...this.#nics.values()].filter((nic) => nic.node === nodeName && !nic.isPrimary).map((nic) => nic.eniId);
  }

  /** An attached ENI as it is now; its interface name may have changed by `replug`. @throws Error when its link is gone */
  async eni(eniId: string): Promise<AttachedEni> {
    const nic = this.#nic(eniId);
    return this.#describe(nic, await this.#ifnameOf(nic));
  }

  /** The ENI that an address is led to, primary NICs included; undefined when none. */
  eniOf(ip: string): string | undefined {
    const owns = (nic: Nic): boolean => nic.primaryIp === ip || nic.primaryIpv6 === ip || nic.assigned.has(ip);
    return [...this.#nics.values()].find(owns)?.eniId;
  }

  /** The NodeENIConfig of a node as YAML. Each call has a higher supply epoch than the one before. */
  nodeEniConfig(nodeName: string): string {
    this.#supplyEpoch += 1;
    const nics = [...this.#nics.values()].filter((nic) => nic.node === nodeName && !nic.isPrimary);
    return nodeEniConfigYaml(nodeName, nics, this.#supplyEpoch);
  }

  /** Writes a node's NodeENIConfig to a file, whole or not at all. */
  writeSupply(nodeName: string, path: string): void {
    writeFileAtomically(path, this.nodeEniConfig(nodeName));
  }

  /** Packets that went through the router since the last reset, by ENI. */
  packetLog(): Promise<readonly PassedPackets[]> {
    return readPassed(this.router, (port) => this.#nameOfPort(port));
  }

  /** Packets that the router refused since the last reset, by ENI. */
  droppedPackets(): Promise<readonly DroppedPackets[]> {
    return readDropped(this.router, (port) => this.#nameOfPort(port));
  }

  /** Forgets all packet counts. */
  resetPacketLog(): Promise<void> {
    return resetPacketLog(this.router);
  }

  /** Removes every namespace of this VPC, those made under its prefix by others included. Idempotent. */
  async close(): Promise<void> {
    await deleteNetnsNames((await listNetnsNames()).filter((name) => name.startsWith(this.prefix)));
    this.#reserved.release();
  }

  async #plug(nic: Nic): Promise<void> {
    await Promise.all([
      ipBatch(plugLines(nic, this.router, this.#netnsOf(nic.node), this.#portSerial(nic))),
      this.router.nft(portElements(nic, 'add')),
    ]);
    await this.router.ipBatch(portLines(nic));
  }

  async #unplug(nic: Nic): Promise<void> {
    // Exit status is not judged: the link may have died with the namespace of its other end.
    await this.router.tryRun(['ip', 'link', 'delete', nic.port]);
  }

  #newNic(options: AttachOptions, node: string, isPrimary: boolean): Nic {
    if (this.#nics.has(options.eniId)) throw new Error(`${options.eniId}: is attached already`);
    this.#netnsOf(node);
    const subnet = this.#subnets.get(options.subnetId);
    if (subnet === undefined) throw new Error(`${options.subnetId}: no such subnet`);
    this.#serial += 1;
    const nic: Nic = {
      eniId: options.eniId,
      node,
      subnet,
      mac: nicMac(this.#serial),
      primaryIp: subnet.take(4),
      primaryIpv6: subnet.cidrV6 === undefined ? undefined : subnet.take(6),
      port: `p${this.#serial}`,
      mtu: options.mtu ?? this.#mtu,
      isPrimary,
      assigned: new Map(),
    };
    this.#nics.set(nic.eniId, nic);
    return nic;
  }

  #forget(nic: Nic): void {
    this.#nics.delete(nic.eniId);
    for (const ip of [nic.primaryIp, nic.primaryIpv6, ...nic.assigned.keys()]) {
      if (ip !== undefined) nic.subnet.release(ip);
    }
  }

  #record(nic: Nic, family: Family, wanted?: string): string {
    const ip = nic.subnet.take(family, wanted);
    this.#assignments += 1;
    nic.assigned.set(ip, { ip, family, assignmentId: `asg-${this.#assignments}`, isReleasing: false });
    return ip;
  }

  #amend(nic: Nic, ip: string, change: Partial<AssignedIp>): void {
    const assigned = nic.assigned.get(ip);
    if (assigned === undefined) throw new Error(`${nic.eniId}: ${ip} is not assigned to it`);
    nic.assigned.set(ip, { ...assigned, ...change });
  }

  #nic(eniId: string): Nic {
    const nic = this.#nics.get(eniId);
    if (nic === undefined) throw new Error(`${eniId}: no such ENI in this VPC`);
    return nic;
  }

  #netnsOf(node: string): NetnsView {
    if (!this.nodeNames.includes(node)) throw new Error(`${node}: no such node in this VPC`);
    return new NetnsView(`${this.prefix}${node}`);
  }

  #portSerial(nic: Nic): number {
    return Number(nic.port.slice(1));
  }

  #nameOfPort(port: string): string {
    return [...this.#nics.values()].find((nic) => nic.port === port)?.eniId ?? port;
  }

  async #ifnameOf(nic: Nic): Promise<string> {
    const links = await this.#netnsOf(nic.node).ipJson('link');
    const link = links.find((candidate) => candidate['address'] === nic.mac);
    if (link === undefined) throw new Error(`${nic.eniId}: no link with MAC ${nic.mac} in ${nic.node}`);
    return String(link['ifname']);
  }

  #describe(nic: Nic, ifname: string): AttachedEni {
    const { subnet } = nic;
    return {
      eniId: nic.eniId,
      node: nic.node,
      subnetId: subnet.id,
      mac: nic.mac,
      primaryIp: nic.primaryIp,
      ...(nic.primaryIpv6 === undefined ? {} : { primaryIpv6: nic.primaryIpv6 }),
      gateway: subnet.gateway,
      ...(subnet.gatewayV6 === undefined ? {} : { gatewayV6: subnet.gatewayV6 }),
      subnetCidr: subnet.cidr,
      ...(subnet.cidrV6 === undefined ? {} : { subnetCidrV6: subnet.cidrV6 }),
      ifname,
    };
  }
}

function primaryId(node: string): string {
  return `${node}/eth0`;
}

/** `ip` lines, run in the node, that a node's own network set-up would do for its primary NIC. */
function primaryLines(nic: Nic): readonly string[] {
  const { subnet } = nic;
  const v6 =
    nic.primaryIpv6 === undefined
      ? []
      : [
          // A cloud hands out single IPv6 addresses; the gateway is the only neighbour.
          `address add ${nic.primaryIpv6}/128 dev eth0 nodad`,
          `route add ${subnet.gatewayV6}/128 dev eth0`,
          `route add default via ${subnet.gatewayV6} dev eth0`,
        ];
  return [
    'link set lo up',
    `address add ${nic.primaryIp}/${subnet.prefixLength(4)} dev eth0`,
    'link set eth0 up',
    `route add default via ${subnet.gateway} dev eth0`,
    ...v6,
  ];
}

async function ipBatch(lines: readonly string[]): Promise<void> {
  await run(['ip', '-batch', '-'], { input: `${lines.join('\n')}\n` });
}
