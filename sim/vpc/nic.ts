import type { Family, Subnet } from './subnet.ts';

/** An address that the VPC routes to a NIC. */
export type AssignedIp = {
  readonly ip: string;
  readonly family: Family;
  /** Unique per assignment: the same address assigned again has another id. */
  readonly assignmentId: string;
  /** The other family's address of the same dual-stack Pod. */
  readonly pairedIp?: string;
  /** True once the cloud announced that it will take the address back. */
  readonly isReleasing: boolean;
};

/** Whose a whole ENI is. */
export type EniClaim = { readonly namespace: string; readonly name: string; readonly uid?: string };

/** A network interface of the small VPC: its port on the router and its end in a node. */
export type Nic = {
  readonly eniId: string;
  readonly node: string;
  readonly subnet: Subnet;
  readonly mac: string;
  readonly primaryIp: string;
  readonly primaryIpv6: string | undefined;
  /** Interface name in the router's namespace. */
  readonly port: string;
  readonly mtu: number;
  readonly isPrimary: boolean;
  /** A Pod gets it as a whole. */
  readonly isDirect: boolean;
  /** Changes with each attachment. */
  readonly attachmentId: string;
  /** For the Pods of one name alone. */
  claim?: EniClaim;
  readonly assigned: Map<string, AssignedIp>;
};

/** What `attachEni` tells: the words that the cloud's API would use. */
export type AttachedEni = {
  readonly eniId: string;
  readonly node: string;
  readonly subnetId: string;
  readonly mac: string;
  readonly primaryIp: string;
  readonly primaryIpv6?: string;
  readonly gateway: string;
  readonly gatewayV6?: string;
  readonly subnetCidr: string;
  readonly subnetCidrV6?: string;
  /** Name that the node's kernel gave the NIC when it was plugged in. */
  readonly ifname: string;
};

/** MAC of NIC number `serial`: Tencent Cloud's own prefix, so that it is recognized in a dump. */
export function nicMac(serial: number): string {
  return macOf('20:90:6f', serial);
}

/** MAC of the router's side of port number `serial`. */
export function portMac(serial: number): string {
  return macOf('fe:ee:00', serial);
}

/** Every address that the router leads to a NIC: its primary ones and the assigned ones. */
export function routedIps(nic: Nic): readonly string[] {
  const primary = nic.primaryIpv6 === undefined ? [nic.primaryIp] : [nic.primaryIp, nic.primaryIpv6];
  return [...primary, ...nic.assigned.keys()];
}

function macOf(prefix: string, serial: number): string {
  const hex = serial.toString(16).padStart(6, '0');
  return `${prefix}:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}`;
}
