import { sideName } from '../../dataplane/host-veth-name.ts';
import type { Family } from '../../dataplane/ip-prefix.ts';
import { POD_GATEWAY_IPV4, POD_GATEWAY_IPV6 } from '../../dataplane/numbers.ts';
import { blockOf, podCidrOf } from '../../dataplane/pod-cidr.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { InitOf } from '../api/codec.ts';
import type { ATTACHMENT } from '../api/messages.ts';
import type { Lease, LeasedNic } from '../journal/lease.ts';
import { subnetHalves } from './subnet-halves.ts';

/** How an ENI addresses its Pods in one family, for main plugins that make the link themselves. */
export type EniAddressing = {
  readonly family: Family;
  readonly ip: string;
  /** The VPC's gateway in the subnet. */
  readonly gateway: string;
  readonly subnetCidr: string;
  /** The ENI's interface in the host's namespace; absent when it is not there. */
  readonly link?: { readonly name: string; readonly mac: string };
};

const ANY = { 4: '0.0.0.0/0', 6: '::/0' } as const;
const POD_GATEWAY = { 4: POD_GATEWAY_IPV4, 6: POD_GATEWAY_IPV6 } as const;
const BITS = { 4: 32, 6: 128 } as const;
const CONTAINER_INDEX = 1;
const NO_INTERFACE = -1;

/**
 * Builds what the runtime gets for a lease: the same for ADD, a repeated ADD and CHECK.
 * @throws CniFailureError 103 for an uplink that is not known
 */
export function attachmentOf(lease: Lease, enis: readonly EniAddressing[]): InitOf<typeof ATTACHMENT> {
  if (lease.nic !== undefined) return exclusive(lease, lease.nic);
  if (lease.block !== undefined && lease.block.wiring === 'bridge') return onBridge(lease, lease.block.cidr);
  if (lease.plugin !== 'ipam') return wired(lease);
  return lease.uplink === undefined ? addressesOnly(lease, enis) : withUplink(lease, enis);
}

function wired(lease: Lease): InitOf<typeof ATTACHMENT> {
  return {
    interfaces: [
      { name: lease.hostVeth?.name ?? '', mac: lease.hostVeth?.mac ?? '', mtu: lease.mtu, sandbox: '' },
      { name: lease.ifName, mac: lease.podMac ?? '', mtu: lease.mtu, sandbox: lease.netns },
    ],
    ips: lease.addresses.map(({ ip, family, eniId }) => ({
      address: `${ip}/${BITS[family]}`,
      gateway: POD_GATEWAY[family],
      interfaceIndex: CONTAINER_INDEX,
      eniId,
    })),
    routes: lease.addresses.map(({ family }) => ({ dst: ANY[family], gw: POD_GATEWAY[family] })),
  };
}

/** Builds the reply for a Pod on the bridge: its address in its block, whose first address is the gateway. */
function onBridge(lease: Lease, cidr: string): InitOf<typeof ATTACHMENT> {
  const { gateway, prefixLength } = blockOf(podCidrOf(cidr));
  const { interfaces = [] } = wired(lease);
  return {
    interfaces,
    ips: lease.addresses.map(({ ip, eniId }) => ({
      address: `${ip}/${prefixLength}`,
      ...{ gateway, eniId },
      interfaceIndex: CONTAINER_INDEX,
    })),
    routes: [{ dst: ANY[4], gw: gateway }],
  };
}

/**
 * Builds the reply for a whole ENI: its interface with its own address and gateway. The veth pair beside it is listed
 * too, without addresses.
 */
function exclusive(lease: Lease, { primary, sideMac }: LeasedNic): InitOf<typeof ATTACHMENT> {
  const { hostVeth, ifName, podMac = '', mtu, netns, eniId } = lease;
  const assigned = primary.filter(({ ip }) => lease.addresses.some((address) => address.ip === ip));
  return {
    interfaces: [
      { name: hostVeth?.name ?? '', mac: hostVeth?.mac ?? '', mtu, sandbox: '' },
      { name: ifName, mac: podMac, mtu, sandbox: netns },
      { name: sideName(ifName), mac: sideMac, mtu, sandbox: netns },
    ],
    ips: assigned.map(({ ip, family, gateway, subnetCidr }) => ({
      address: `${ip}/${family === 4 ? subnetCidr.split('/')[1] : BITS[family]}`,
      gateway,
      interfaceIndex: CONTAINER_INDEX,
      eniId,
    })),
    routes: assigned.map(({ family, gateway }) => ({ dst: ANY[family], gw: gateway })),
  };
}

/**
 * Builds the reply to `tke-eni-ipamc`. The reference `ptp` and `bridge` put the gateway's address on their host side
 * and refuse one outside the Pod's prefix. So neither 169.254.1.1 nor the VPC's own gateway is usable: the first lies
 * outside, and the second would become the node's and cut the ENI off from its real gateway. The ENI's primary address
 * is the node's already and lies in the subnet.
 *
 * The subnet's other members are not on the Pod's link, whatever its prefix says; under `bridge` nothing would answer
 * ARP for them. Two routes, more specific than the connected one, send the Pod's packets for them to the gateway as
 * well.
 */
function addressesOnly(lease: Lease, enis: readonly EniAddressing[]): InitOf<typeof ATTACHMENT> {
  const entries = lease.addresses.map(({ ip, family, eniId }) => {
    const addressing = enis.find((eni) => eni.family === family);
    const subnetCidr = addressing?.subnetCidr ?? `${ip}/${BITS[family]}`;
    const address = `${ip}/${subnetCidr.split('/')[1]}`;
    const gateway = addressing?.ip ?? '';
    return {
      ip: { address, gateway, interfaceIndex: NO_INTERFACE, eniId },
      // For any but the default route, CHECK of the reference plugins requires an explicit gateway.
      routes: [{ dst: ANY[family], gw: '' }, ...subnetHalves(subnetCidr).map((dst) => ({ dst, gw: gateway }))],
    };
  });
  return { interfaces: [], ips: entries.map(({ ip }) => ip), routes: entries.flatMap(({ routes }) => routes) };
}

/**
 * Builds the reply to `tke-eni-ipamc` under a main plugin that keeps the routes of its Pods itself, as cilium-cni does with
 * `installUplinkRoutesForDelegatedIPAM`: the ENI is the first interface without a sandbox, and the gateway is the VPC's.
 * Each address has one: cilium-cni reads a missing gateway as the text "<nil>".
 */
function withUplink(lease: Lease, enis: readonly EniAddressing[]): InitOf<typeof ATTACHMENT> {
  const entries = lease.addresses.map(({ ip, family, eniId }) => {
    const { link, gateway = '', subnetCidr = '' } = enis.find((eni) => eni.family === family) ?? {};
    if (link === undefined || gateway === '') {
      const what = link === undefined ? 'no interface on this node' : `no IPv${family} gateway`;
      throw new CniFailureError(CNI_CODE.eniGone, `ENI ${eniId} of ${ip} has ${what}`, 'try again');
    }
    const address = `${ip}/${subnetCidr.split('/')[1]}`;
    return {
      link,
      ip: { address, gateway, interfaceIndex: NO_INTERFACE, eniId },
      route: { dst: ANY[family], gw: gateway },
    };
  });
  return {
    interfaces: entries.slice(0, 1).map(({ link: { name, mac } }) => ({ name, mac, mtu: 0, sandbox: '' })),
    ips: entries.map(({ ip }) => ip),
    routes: entries.map(({ route }) => route),
  };
}
