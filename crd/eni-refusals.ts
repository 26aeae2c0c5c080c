import { isInCidr, lastOf, parseCidr } from './ip-text.ts';

/** An ENI as it is written for a node, as far as it is checked here. */
export type CheckedEni = {
  /** Lower case, with colons. */
  readonly mac: string;
  /** Its own address per family, with gateway and subnet. */
  readonly families: readonly {
    readonly primaryIp: string;
    readonly gateway: string;
    readonly subnetCidr: string;
  }[];
  /** Addresses for Pods. */
  readonly addresses: readonly string[];
};

/** What the node has itself, and what others on it use. Addresses in their shortest form. */
export type NodeOwn = {
  /** Addresses of its links, except those of the link with the ENI's MAC. */
  readonly addresses: ReadonlySet<string>;
  /** MACs of links that are no ENI, such as that of the primary interface, with what the link is. Lower case. */
  readonly macs: ReadonlyMap<string, string>;
  /** Addresses of others that the node sends packets to, such as its next hops, with what each is. */
  readonly peers: ReadonlyMap<string, string>;
  /** Networks that the VPC can have: no ENI is outside them. Absent: not known, nothing is refused for it. */
  readonly vpcNetworks?: readonly string[];
};

/** Why an ENI is refused as a whole, and which of its addresses are refused, with the reason of each. */
type EniRefusals = { readonly whole?: string; readonly addresses: ReadonlyMap<string, string> };

/**
 * Decides what of an ENI a node must not get, whatever its object says: an address that is the node's own would take its
 * traffic, one outside the VPC that of a server elsewhere, one that is no address of a Pod would never be answered. An
 * address is refused alone, a wrong subnet, MAC or own address with the whole ENI.
 * @see RFC 6890; VPC: the first and the last address of a subnet, and the gateway's, are reserved
 */
export function refusalsOfEni(eni: CheckedEni, own: NodeOwn): EniRefusals {
  const whole = whyNotMac(eni.mac, own) ?? first(eni.families, (family) => whyNotFamily(family, own));
  const addresses = new Map<string, string>();
  const reserved = new Map(eni.families.flatMap(reservedOf));
  for (const ip of eni.addresses) {
    const why =
      whySpecial(ip) ?? reserved.get(ip) ?? whyOwn(ip, own) ?? own.peers.get(ip) ?? whyOutside(ip, eni.families, own);
    if (why !== undefined) addresses.set(ip, why);
  }
  return { ...(whole === undefined ? {} : { whole }), addresses };
}

function whyNotMac(mac: string, own: NodeOwn): string | undefined {
  const link = own.macs.get(mac);
  if (link !== undefined) return `its MAC ${mac} is that of ${link}`;
  if (mac === '00:00:00:00:00:00') return `its MAC ${mac} is that of lo`;
  // Bit 0 of the first byte: a group of receivers, no interface.
  return Number.parseInt(mac.slice(0, 2), 16) % 2 === 1 ? `its MAC ${mac} is a group address` : undefined;
}

function whyNotFamily(family: CheckedEni['families'][number], own: NodeOwn): string | undefined {
  const { primaryIp, gateway, subnetCidr } = family;
  const why =
    whySpecial(primaryIp) ??
    reservedOf(family).find(([ip]) => ip === primaryIp)?.[1] ??
    whyOwn(primaryIp, own) ??
    own.peers.get(primaryIp);
  if (why !== undefined) return `its own address ${primaryIp} is ${why}`;
  // In IPv6 the first address is that of any router of the subnet. @see RFC 4291, 2.6.1
  const end = gateway.includes(':') ? undefined : endsOf(subnetCidr).get(gateway);
  const gatewayWhy = whySpecial(gateway) ?? end ?? whyOwn(gateway, own);
  if (gatewayWhy !== undefined) return `its gateway ${gateway} is ${gatewayWhy}`;
  return whyNotSubnet(subnetCidr, own);
}

/** Shortest prefix of a subnet: a VPC is at most a /12 of IPv4, and gets a /56 of IPv6. */
const MIN_PREFIX = { 4: 8, 6: 32 } as const;

function whyNotSubnet(subnetCidr: string, own: NodeOwn): string | undefined {
  const subnet = parseCidr(subnetCidr);
  if (subnet === undefined) return undefined;
  const min = MIN_PREFIX[subnet.family];
  if (subnet.prefixLength < min) return `its subnet ${subnetCidr} is larger than any, /${min}`;
  const range = SPECIAL.find(
    ({ cidr }) => isInCidr(cidr.split('/')[0] ?? '', subnetCidr) || isInCidr(subnet.address, cidr),
  );
  if (range !== undefined) return `its subnet ${subnetCidr} contains ${range.cidr}, ${range.name}`;
  return isOfVpc(subnet.address, subnet.prefixLength, own) ? undefined : `its subnet ${subnetCidr} is ${OUTSIDE}`;
}

const OUTSIDE = "outside the VPC: in no private range, not near the node's own address, not in --vpc-cidr";

/** An address that is in a subnet of its ENI is checked with that subnet. */
function whyOutside(ip: string, families: CheckedEni['families'], own: NodeOwn): string | undefined {
  if (isOfVpc(ip, 128, own) || families.some(({ subnetCidr }) => isInCidr(ip, subnetCidr))) return undefined;
  return OUTSIDE;
}

function isOfVpc(address: string, prefixLength: number, { vpcNetworks }: NodeOwn): boolean {
  if (vpcNetworks === undefined) return true;
  return vpcNetworks.some(
    (network) => isInCidr(address, network) && (parseCidr(network)?.prefixLength ?? 128) <= prefixLength,
  );
}

function whyOwn(ip: string, { addresses }: NodeOwn): string | undefined {
  return addresses.has(ip) ? "the node's own" : undefined;
}

/** Ranges in which no interface of a VPC can have an address. @see RFC 6890 */
const SPECIAL = [
  { cidr: '0.0.0.0/8', name: 'this network' },
  { cidr: '127.0.0.0/8', name: 'loopback' },
  { cidr: '169.254.0.0/16', name: 'link-local and metadata' },
  { cidr: '224.0.0.0/4', name: 'multicast' },
  { cidr: '240.0.0.0/4', name: 'reserved and broadcast' },
  { cidr: '::/127', name: 'unspecified and loopback' },
  { cidr: '::ffff:0:0/96', name: 'IPv4-mapped' },
  { cidr: 'fe80::/10', name: 'link-local' },
  { cidr: 'ff00::/8', name: 'multicast' },
] as const;

function whySpecial(ip: string): string | undefined {
  // Nearly all addresses: ipamd checks some hundred of each node again and again.
  if (/^(?:10|172|192)\.|^fd/.test(ip)) return undefined;
  const range = SPECIAL.find(({ cidr }) => isInCidr(ip, cidr));
  return range === undefined ? undefined : `in ${range.cidr}, ${range.name}`;
}

/**
 * Lists the gateways of ENIs as peers of their node. One outside its own subnet is left out: it is wrong, and would
 * refuse an address of another ENI.
 */
export function gatewaysOf(families: CheckedEni['families']): readonly (readonly [string, string])[] {
  return families
    .filter(({ gateway, subnetCidr }) => isInCidr(gateway, subnetCidr))
    .map(({ gateway, subnetCidr }) => [gateway, `the gateway of ${subnetCidr}`] as const);
}

function reservedOf({ gateway, subnetCidr }: CheckedEni['families'][number]): readonly (readonly [string, string])[] {
  return [[gateway, `the gateway of ${subnetCidr}`], ...endsOf(subnetCidr)];
}

/** Lists the addresses of a subnet that no interface has. @see RFC 3021, RFC 6164: one of one or two addresses has none */
function endsOf(subnetCidr: string): ReadonlyMap<string, string> {
  const subnet = parseCidr(subnetCidr);
  if (subnet === undefined || subnet.prefixLength >= (subnet.family === 4 ? 31 : 127)) return new Map();
  const network = [subnet.address, `the network address of ${subnetCidr}`] as const;
  if (subnet.family === 6) return new Map([network]);
  return new Map([network, [lastOf(subnet), `the broadcast address of ${subnetCidr}`]]);
}

function first<T>(items: readonly T[], why: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = why(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
