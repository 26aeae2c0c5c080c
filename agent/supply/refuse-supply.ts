import { type CheckedEni, gatewaysOf, type NodeOwn, refusalsOfEni } from '../../crd/eni-refusals.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import { isHostPrefix } from '../../dataplane/ip-prefix.ts';
import { ownAddress, ownPrefix } from '../../netlink/address-message.ts';
import { IFA_F_PERMANENT } from '../../netlink/uapi/if-addr.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK } from '../../netlink/uapi/rtnetlink.ts';
import type { EniPrimaryAddress, Supply, SupplyEni, SupplyRefusal } from '../journal/supply.ts';
import { findPrimary, type PrimaryEvidence } from '../node/find-primary.ts';
import type { HostView } from '../node/node-network.ts';
import { nextHopsOf } from '../node/node-peers.ts';
import { vpcNetworks } from '../node/vpc-networks.ts';
import { type EniInUse, whyContradicted } from './why-contradicted.ts';

/** What decides apart from the kernel. */
type KnownOfNode = {
  /** What tells the primary interface. Absent: the default route alone. */
  readonly primary?: PrimaryEvidence;
  /** Networks of the VPC beside those that every VPC may have: `--vpc-cidr`. Default: none. */
  readonly vpcCidrs?: readonly string[];
  /** Addresses of servers that the node needs, with what each is. */
  readonly servers?: ReadonlyMap<string, string>;
  /** Addresses that we added to links. */
  readonly added?: readonly { readonly ifindex: number; readonly prefix: string }[];
  /** Shared ENIs whose addresses Pods have. */
  readonly inUse?: readonly EniInUse[];
  /**
   * Another program wires the Pods (`--role=uplinks`): it may have put an address of theirs on a link of the node, as
   * Cilium its router's on `cilium_host`. Default false.
   */
  readonly arePodsOfOthers?: boolean;
};

/**
 * Takes out of a supply what the node must not get: ENIs and addresses that are its own, or that no Pod can have. The
 * rest of the supply is untouched.
 */
export function refuseSupply(
  supply: Supply,
  host: HostView,
  node: KnownOfNode = {},
): { readonly supply: Supply; readonly refusals: readonly SupplyRefusal[] } {
  const refusals: SupplyRefusal[] = [];
  const ownOf = ownNetwork(supply, host, node);
  const refusedOf = (eni: CheckedHere, ips: readonly string[]): ReadonlyMap<string, string> | true => {
    const { eniId, mac } = eni;
    const { whole: fault, addresses } = refusalsOfEni({ mac, families: familiesOf(eni), addresses: ips }, ownOf(eni));
    const whole = whyContradicted(eni, node.inUse ?? [], host.links) ?? fault;
    if (whole !== undefined) refusals.push({ eniId, text: `refused: ${whole}` });
    for (const [ip, why] of addresses) refusals.push({ eniId, ip, text: `address ${ip} refused: it is ${why}` });
    return whole === undefined ? addresses : true;
  };
  const enis = supply.enis.flatMap((eni): readonly SupplyEni[] => {
    const refused = refusedOf(
      eni,
      eni.addresses.map(({ ip }) => ip),
    );
    if (refused === true) return [];
    return refused.size === 0 ? [eni] : [{ ...eni, addresses: eni.addresses.filter(({ ip }) => !refused.has(ip)) }];
  });
  const exclusive = supply.direct?.enis.filter((eni) => refusedOf(eni, []) !== true);
  if (refusals.length === 0) return { supply, refusals };
  const withExclusive = supply.direct === undefined ? {} : { direct: { ...supply.direct, enis: exclusive ?? [] } };
  return { supply: { ...supply, enis, ...withExclusive }, refusals };
}

type CheckedHere = { readonly eniId: string; readonly mac: string; readonly primary: readonly EniPrimaryAddress[] };

function ownNetwork(
  supply: Supply,
  host: HostView,
  {
    primary: evidence = { nodeIps: [] },
    vpcCidrs = [],
    servers = new Map(),
    added = [],
    inUse = [],
    arePodsOfOthers = false,
  }: KnownOfNode,
): (eni: CheckedHere) => NodeOwn {
  const enis: readonly CheckedHere[] = [...supply.enis, ...(supply.direct?.enis ?? [])];
  const suppliedMacs = new Set([...enis, ...inUse].map(({ mac }) => mac).filter((mac) => mac !== ''));
  // Without the supply's ENIs no default route may be left: then the supply names the primary interface itself.
  const primary = findPrimary(host, evidence, suppliedMacs) ?? findPrimary(host, evidence, new Set());
  const macOf = new Map(host.links.map((link) => [link.ifindex, permanentMac(link) ?? '']));
  const primaryMac = primary === undefined ? undefined : macOf.get(primary.ifindex);
  const gateways = enis.flatMap((eni) => gatewaysOf(familiesOf(eni)));
  const peers = new Map([...servers, ...nextHopsOf(host.mainRoutes), ...gateways]);
  // What we added to a link that this supply does not name is about to go.
  const addedKeys = new Set(added.map(({ ifindex, prefix }) => `${ifindex} ${prefix}`));
  const isAdded = (found: Address): boolean => addedKeys.has(`${found.ifindex} ${ownPrefix(found)}`);
  const isSupplied = ({ ifindex }: Address): boolean => suppliedMacs.has(macOf.get(ifindex) ?? '');
  const addresses = host.addresses.filter((found) => isSupplied(found) || !isAdded(found));
  const isOfPods = (found: Address): boolean =>
    arePodsOfOthers && isHostPrefix(ownPrefix(found)) && found.ifindex !== primary?.ifindex && !isSupplied(found);
  const own = addresses.filter((address) => !isOfPods(address));
  const networks = vpcNetworks({
    configured: vpcCidrs,
    nodeIps: evidence.nodeIps,
    ofPrimary: addresses.filter(({ ifindex }) => ifindex === primary?.ifindex).map(ownPrefix),
  });
  return (eni) => {
    const { mac } = eni;
    const others = own.filter(
      ({ ifindex }) => ifindex === primary?.ifindex || mac === '' || macOf.get(ifindex) !== mac,
    );
    const foreign = mac === primaryMac ? "the node's primary interface" : whyForeignMac(eni, host, isAdded);
    return {
      macs: new Map(foreign === undefined ? [] : [[mac, foreign]]),
      addresses: new Set(others.map(ownAddress)),
      peers,
      vpcNetworks: networks,
    };
  };
}

function familiesOf({ primary }: CheckedHere): CheckedEni['families'] {
  return primary.map(({ ip, gateway, subnetCidr }) => ({ primaryIp: ip, gateway, subnetCidr }));
}

/**
 * Finds out why no link with an ENI's MAC may become that ENI: each one is a software link, or has a use already.
 * Undefined when a link may, or when there is none. A link that has the ENI's own address as we set it is in use as that
 * ENI already, and stays so whatever others did to it since. A veth counts as a NIC while it is no port of a bridge.
 */
function whyForeignMac(
  { mac, primary }: CheckedHere,
  { links, addresses }: HostView,
  isAdded: (found: Address) => boolean,
): string | undefined {
  const named = links.filter((link) => permanentMac(link) === mac);
  const ownIps = new Set(primary.map(({ ip }) => ip));
  const reasons = named.map((link) => {
    const ofLink = addresses.filter(({ ifindex, scope }) => ifindex === link.ifindex && scope !== RT_SCOPE_LINK);
    const software = whySoftware(link);
    if (software !== undefined) return software;
    if (ofLink.some((found) => ownIps.has(ownAddress(found)) && isHostPrefix(ownPrefix(found)))) return undefined;
    const isOurs = (found: Address) => ownIps.has(ownAddress(found)) || isAdded(found) || isFromNetwork(found);
    const foreign = ofLink.find((found) => !isOurs(found));
    if (foreign !== undefined) return `${link.ifname}, which has the address ${ownAddress(foreign)}`;
    return link.kind === 'veth' && (link.master ?? 0) !== 0 ? `${link.ifname}, a port of another link` : undefined;
  });
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** Names the kind of a link that no NIC has; hardware has none. */
function whySoftware({ ifname, kind }: HostView['links'][number]): string | undefined {
  return kind === undefined || kind === 'veth' ? undefined : `${ifname}, of kind ${kind}`;
}

type Address = HostView['addresses'][number];

/** Whether the kernel made an IPv6 address of a router advertisement: any NIC in a subnet with IPv6 gets one. */
function isFromNetwork({ family, flags }: Address): boolean {
  return family === AF_INET6 && ((flags ?? 0) & IFA_F_PERMANENT) === 0;
}
