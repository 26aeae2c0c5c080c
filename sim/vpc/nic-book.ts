import { type AssignedIp, type AttachedEni, type Nic, nicMac } from './nic.ts';
import { type Family, Subnet, type SubnetSpec } from './subnet.ts';

/** What a new NIC is to be. */
type NicOrder = {
  readonly eniId: string;
  readonly subnetId: string;
  readonly node: string;
  readonly mtu: number;
  readonly isPrimary: boolean;
  readonly isDirect?: boolean;
  /** Chosen by the cloud; absent: the next free one. */
  readonly mac?: string;
  readonly primaryIp?: string;
};

/** The cloud's book: which NICs there are, and who has which address. Nothing in it touches the kernel. */
export class NicBook {
  #subnets: ReadonlyMap<string, Subnet>;
  #nics = new Map<string, Nic>();
  #serial = 0;
  #assignments = 0;

  constructor(subnets: readonly SubnetSpec[]) {
    this.#subnets = new Map(subnets.map((subnet) => [subnet.id, new Subnet(subnet)]));
  }

  /** Enters a NIC with addresses of its own. @throws Error when its id is taken or the subnet unknown or full */
  add(order: NicOrder): Nic {
    if (this.#nics.has(order.eniId)) throw new Error(`${order.eniId}: is attached already`);
    const subnet = this.#subnets.get(order.subnetId);
    if (subnet === undefined) throw new Error(`${order.subnetId}: no such subnet`);
    this.#serial += 1;
    const nic: Nic = {
      eniId: order.eniId,
      node: order.node,
      subnet,
      mac: order.mac ?? nicMac(this.#serial),
      primaryIp: subnet.take(4, order.primaryIp),
      primaryIpv6: subnet.cidrV6 === undefined ? undefined : subnet.take(6),
      port: `p${this.#serial}`,
      mtu: order.mtu,
      isPrimary: order.isPrimary,
      isDirect: order.isDirect === true,
      attachmentId: `att-${this.#serial}`,
      assigned: new Map(),
    };
    this.#nics.set(nic.eniId, nic);
    return nic;
  }

  /** Strikes a NIC out and gives its addresses back. */
  remove(nic: Nic): void {
    this.#nics.delete(nic.eniId);
    for (const ip of [nic.primaryIp, nic.primaryIpv6, ...nic.assigned.keys()]) {
      if (ip !== undefined) nic.subnet.release(ip);
    }
  }

  /** @throws Error when there is no NIC of that id */
  get(eniId: string): Nic {
    const nic = this.#nics.get(eniId);
    if (nic === undefined) throw new Error(`${eniId}: no such ENI in this VPC`);
    return nic;
  }

  /** A node's NICs without its primary one, in the order of attaching. */
  enisOf(node: string): readonly Nic[] {
    return [...this.#nics.values()].filter((nic) => nic.node === node && !nic.isPrimary);
  }

  /** The NIC that an address belongs to; undefined when none. */
  ownerOf(ip: string): Nic | undefined {
    const owns = (nic: Nic): boolean => nic.primaryIp === ip || nic.primaryIpv6 === ip || nic.assigned.has(ip);
    return [...this.#nics.values()].find(owns);
  }

  /** ENI id of a router port; the port's own name when it is none of a NIC. */
  nameOfPort(port: string): string {
    return [...this.#nics.values()].find((nic) => nic.port === port)?.eniId ?? port;
  }

  /** Assigns the next free address of the subnet, or the wanted one. */
  assign(nic: Nic, family: Family, wanted?: string): string {
    const ip = nic.subnet.take(family, wanted);
    this.#assignments += 1;
    nic.assigned.set(ip, { ip, family, assignmentId: `asg-${this.#assignments}`, isReleasing: false });
    return ip;
  }

  /** Changes what is noted of an assigned address. @throws Error when it is not assigned to the NIC */
  amend(nic: Nic, ip: string, change: Partial<AssignedIp>): void {
    const assigned = nic.assigned.get(ip);
    if (assigned === undefined) throw new Error(`${nic.eniId}: ${ip} is not assigned to it`);
    nic.assigned.set(ip, { ...assigned, ...change });
  }

  /** Takes an assigned address back. @throws Error when it is not assigned to the NIC */
  unassign(nic: Nic, ip: string): void {
    if (!nic.assigned.delete(ip)) throw new Error(`${nic.eniId}: ${ip} is not assigned to it`);
    nic.subnet.release(ip);
  }
}

/** Describes a NIC in the words of the cloud's API, with the name that the node's kernel gave it. */
export function describeNic(nic: Nic, ifname: string): AttachedEni {
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
