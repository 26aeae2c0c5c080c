import { leaseKey } from '../../agent/journal/lease.ts';
import { ON_LINK_ENI_ID, type Supply } from '../../agent/journal/supply.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import type { EniNetwork, PodNetwork } from '../../dataplane/network.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { ownAddress, ownPrefix } from '../../netlink/address-message.ts';
import { renderRoute } from '../../netlink/render-route.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { RTPROT_KERNEL } from '../../netlink/uapi/rtnetlink.ts';
import { finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId } from '../catalogue/element-id.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import { isAbsentEni } from '../desired/match-recorded-enis.ts';
import type { DifferenceOwner, ObjectNames } from '../model/build-names.ts';
import { keyOfLink } from '../node/find-pod-links.ts';
import type { AgentFacts, HostFacts, NodeFacts } from '../node/node-facts.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import { renderChange } from './change.ts';
import { subjectOf } from './compare-host.ts';
import type { Difference } from './difference.ts';

/** Place of the peer of a host veth without a lease. */
export type LostPeer =
  | { readonly kind: 'host' }
  /** A namespace with a name or a process. */
  | { readonly kind: 'netns'; readonly path: string }
  /** A namespace with neither a name nor a process. */
  | { readonly kind: 'nowhere' }
  | { readonly kind: 'unknown'; readonly why: string };

/** Returns ENIs that are missing on the node, and addresses that other programs configured on the present ones. */
export function compareEnis(
  desired: DesiredNode,
  supply: Supply | undefined,
  host: NodeFacts['host'],
  names: ObjectNames,
): readonly Difference[] {
  // Addresses of the primary interface are on no ENI.
  const supplied = (supply?.enis ?? []).filter(({ eniId }) => eniId !== ON_LINK_ENI_ID);
  const planned = new Set(desired.enis.map((eni) => eni.eniId));
  const macs = new Set(host.links.map(permanentMac));
  const missing = [
    ...desired.enis.filter(isAbsentEni),
    ...supplied.filter((eni) => eni.attached && !planned.has(eni.eniId) && !macs.has(eni.mac)),
  ].map(({ eniId: id, mac }): Difference => {
    const owner: DifferenceOwner = { kind: 'eni', eniId: id };
    const fix = [`look at ${id} in the cloud and at \`kubectl describe nec\`; ipamd attaches it again`];
    const what =
      mac === '' ? `no link is that of ${names.text(owner)}` : `no link has MAC ${mac}: ENI ${id} is not on this node`;
    const details = { what, fix, subjects: [eniId(id)] };
    return { ...finding('eni-detached', details), whose: names.text(owner), owner, changes: [] };
  });
  const present = desired.enis.filter((eni) => !isAbsentEni(eni));
  return [
    ...missing,
    ...present.flatMap((eni) => noCarrier(eni, host, names)),
    ...present.flatMap((eni) => connectedRoutes(eni, host, names)),
  ];
}

function noCarrier(
  { eniId: id, ifindex, ifname }: EniNetwork,
  host: HostFacts,
  names: ObjectNames,
): readonly Difference[] {
  const link = host.links.find((each) => each.ifindex === ifindex);
  if (link === undefined || (link.flags & IFF_UP) === 0 || link.carrier !== 0) return [];
  const owner: DifferenceOwner = { kind: 'eni', eniId: id };
  const details = {
    what: `${names.text(owner)} is up and has no carrier`,
    fix: [`ethtool ${ifname}`, 'detach and attach the ENI in the console if it stays so'],
    subjects: [linkId(ifindex), eniId(id)],
  };
  return [{ ...finding('eni-no-carrier', details), whose: names.text(owner), owner, changes: [] }];
}

/** Returns what leads the node's own traffic out of an ENI: addresses with a connected route, and other routes of table main. */
function connectedRoutes(
  { eniId: id, ifindex, ifname }: EniNetwork,
  host: HostFacts,
  names: ObjectNames,
): readonly Difference[] {
  const owner: DifferenceOwner = { kind: 'eni', eniId: id };
  const addresses = host.addresses.filter(
    (address) => address.ifindex === ifindex && address.family === AF_INET && address.prefixlen < 32,
  );
  const ours = addresses.map(ownAddress);
  const others = host.routes.filter(
    ({ table, oif, protocol, dst }) =>
      table === TABLE_MAIN &&
      oif === ifindex &&
      protocol !== RTPROT_TKE_ENI &&
      !/^(fe80:|ff)/i.test(dst ?? '') &&
      !(protocol === RTPROT_KERNEL && ours.some((ip) => prefixContains(dst, ip))),
  );
  const said = (what: string, fix: readonly string[]): Difference => ({
    ...finding('eni-connected-route', { what, fix, subjects: [eniId(id), linkId(ifindex)] }),
    ...{ whose: names.text(owner), owner, changes: [] },
  });
  const leave = `configure NetworkManager, networkd, cloud-init or the DHCP client to leave ${ifname} alone`;
  return [
    ...addresses
      .map(ownPrefix)
      .map((prefix) =>
        said(`${ifname} has ${prefix}, whose connected route leads the node's own traffic out of the ENI`, [
          `ip address del ${prefix} dev ${ifname}`,
          leave,
        ]),
      ),
    ...others.map((route) =>
      said(`the main table has ${route.dst ?? 'default'} by ${names.text(owner)}`, [
        renderRoute(
          'delete',
          route,
          (index) => host.links.find((link) => link.ifindex === index)?.ifname ?? `if${index}`,
        ),
        leave,
      ]),
    ),
  ];
}

/** Input for the comparison of links and leases. `agent`: absent where no record says which Pods there are. */
type LinkSnapshot = {
  readonly desired: DesiredNode;
  readonly facts: NodeFacts;
  readonly agent?: AgentFacts;
  readonly peers: ReadonlyMap<number, LostPeer>;
  readonly deadSandboxes: ReadonlySet<string>;
};

/** Returns leases without a link or sandbox, links of ours without a lease, and addresses with two owners. */
export function compareLinks(
  { desired, facts, agent, peers, deadSandboxes }: LinkSnapshot,
  names: ObjectNames,
): readonly Difference[] {
  return [
    ...desired.unplanned.map((lost) => unplannedLease(lost, deadSandboxes.has(lost.key), names)),
    ...(agent === undefined ? [] : lostVeths(facts, agent)).flatMap((link) => lostVeth(link, peers.get(link.ifindex))),
    ...addressOwners(desired, facts, names),
    ...[...desired.networks].flatMap(([key, pod]) => [
      ...tooLargeMtu(key, pod, desired, names),
      ...foreignAddresses(key, pod, facts.host, names),
    ]),
  ];
}

function foreignAddresses(
  key: string,
  { kind, hostVeth }: PodNetwork,
  host: NodeFacts['host'],
  names: ObjectNames,
): readonly Difference[] {
  if (kind === 'ipam') return [];
  return host.addresses
    .filter(({ ifindex, family }) => ifindex === hostVeth.ifindex && family === AF_INET)
    .map((address): Difference => {
      const owner: DifferenceOwner = { kind: 'pod', key };
      const prefix = ownPrefix(address);
      const what = `${hostVeth.name} of ${names.text(owner)} has the IPv4 address ${prefix}`;
      const fix = [`ip address del ${prefix} dev ${hostVeth.name}`, 'find out what adds it there'];
      const details = { what, fix, subjects: [linkId(address.ifindex), ...subjectOf(owner)] };
      return { ...finding('veth-foreign-address', details), whose: names.text(owner), owner, changes: [] };
    });
}

/**
 * Returns a Pod's MTU that is larger than its ENI's. The ENI's MTU may have been lowered permanently; Pods that existed
 * before keep the larger one.
 */
function tooLargeMtu(key: string, pod: PodNetwork, desired: DesiredNode, names: ObjectNames): readonly Difference[] {
  if (pod.kind === 'bridge') return [];
  const { kind, mtu, eniTable } = pod;
  const eni = desired.enis.find(({ table }) => table === eniTable);
  if (kind === 'ipam' || eni === undefined || isAbsentEni(eni) || mtu <= eni.mtu) return [];
  const owner: DifferenceOwner = { kind: 'pod', key };
  const what = `${names.text(owner)} sends packets of up to ${mtu} bytes, ${eni.ifname} takes ${eni.mtu}`;
  const fix = [`ip link set dev ${eni.ifname} mtu ${mtu}`, 'or delete the Pod: it comes back with the smaller MTU'];
  const details = { what, fix, subjects: [linkId(eni.ifindex), ...subjectOf(owner)], isOurs: false };
  return [{ ...finding('mtu-mismatch', details), whose: names.text(owner), owner, changes: [] }];
}

/** Returns host veths with our alias and without a lease. */
export function lostVeths(
  { host }: Pick<NodeFacts, 'host'>,
  { journal }: AgentFacts,
): readonly { readonly ifindex: number; readonly ifname: string; readonly key: string }[] {
  const leased = new Set(journal.leases.map(leaseKey));
  return host.links.flatMap((link) => {
    const key = link.kind === 'veth' ? keyOfLink(link) : undefined;
    return key === undefined || leased.has(key) ? [] : [{ ifindex: link.ifindex, ifname: link.ifname, key }];
  });
}

function unplannedLease(
  { key, lease, cause }: DesiredNode['unplanned'][number],
  hasNoSandbox: boolean,
  names: ObjectNames,
): Difference {
  const owner: DifferenceOwner = { kind: 'pod', key };
  const subjects = [podId(key)];
  const name = lease.hostVeth?.name ?? 'its host interface';
  if (cause === 'no-eni') {
    const what = `${names.text(owner)} has ${lease.addresses.map(({ ip }) => ip).join(', ')} of ${lease.eniId}, an ENI that is not in the plan`;
    const fix = ['look at the ENI in the cloud; if it is gone, delete the Pod'];
    return { ...finding('eni-detached', { what, fix, subjects }), whose: names.text(owner), owner, changes: [] };
  }
  if (hasNoSandbox) {
    const what = `${lease.netns} of ${names.text(owner)} is gone, and its lease is still held`;
    const fix = ['start the agent: it does the DELs that were left for it, and collects leases of dead sandboxes'];
    const details = { what, fix, subjects };
    return { ...finding('lease-without-sandbox', details), whose: names.text(owner), owner, changes: [] };
  }
  const what = `${name} of ${names.text(owner)} is gone, and its sandbox is still there`;
  const fix = ['delete the Pod: its interface cannot be made again under a running container'];
  return { ...finding('veth-missing', { what, fix, subjects }), whose: names.text(owner), owner, changes: [] };
}

function lostVeth(
  { ifindex, ifname, key }: ReturnType<typeof lostVeths>[number],
  peer: LostPeer = { kind: 'unknown', why: 'it was not looked for' },
): readonly Difference[] {
  const owner: DifferenceOwner = { kind: 'pod', key };
  const common = { whose: `sandbox ${key}`, owner };
  const subjects = [linkId(ifindex), podId(key)];
  if (peer.kind === 'host' || peer.kind === 'nowhere') {
    const change = { kind: 'delete-veth', key, ifindex, ifname } as const;
    const where =
      peer.kind === 'host' ? 'its other end is on the host too' : 'no name and no process refers to its sandbox';
    const what = `${ifname} has our alias and no lease, and ${where}`;
    return [
      { ...finding('veth-leaked', { what, fix: [renderChange(change)], subjects }), ...common, changes: [change] },
    ];
  }
  const where = peer.kind === 'netns' ? `its other end is in ${peer.path}` : `its other end was not found: ${peer.why}`;
  const what = `${ifname} has our alias and no lease; ${where}`;
  const fix = [
    'restart the agent: it adopts a running sandbox',
    `or end that sandbox, then: ip link del dev ${ifname}`,
  ];
  // Where its other end is found may be said otherwise by each read.
  const readKey = `pod-without-lease ${ifindex} ${ifname} ${key}`;
  return [{ ...finding('pod-without-lease', { what, fix, subjects }), ...common, readKey, changes: [] }];
}

/** Returns addresses of Pods that the host or another Pod has too. */
function addressOwners(desired: DesiredNode, { host, pods }: NodeFacts, names: ObjectNames): readonly Difference[] {
  const byIp = new Map([...desired.networks].flatMap(([key, { ips }]) => ips.map((ip) => [ip, key] as const)));
  const ifnames = new Map(host.links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  const onHost = host.addresses.flatMap((address): readonly Difference[] => {
    const ip = ownAddress(address);
    const key = byIp.get(ip);
    if (key === undefined) return [];
    const ifname = ifnames.get(address.ifindex) ?? `if${address.ifindex}`;
    const line = `ip address del ${ip}/${address.prefixlen} dev ${ifname}`;
    return [twoOwners(ip, key, `${ifname} of the node`, [line, 'find out what adds it there'], names)];
  });
  const inPods = pods.flatMap((pod): readonly Difference[] => {
    if (pod.inside.kind !== 'known') return [];
    return pod.inside.value.addresses.flatMap((address): readonly Difference[] => {
      const ip = ownAddress(address);
      const key = byIp.get(ip);
      if (key === undefined || key === pod.key) return [];
      const other = names.text({ kind: 'pod', key: pod.key });
      return [twoOwners(ip, key, other, [`take ${ip} from ${other}, or delete that Pod`], names)];
    });
  });
  return [...onHost, ...inPods];
}

function twoOwners(ip: string, key: string, other: string, fix: readonly string[], names: ObjectNames): Difference {
  const owner: DifferenceOwner = { kind: 'pod', key };
  const what = `${ip} is the address of ${names.text(owner)}, and ${other} has it too`;
  const details = { what, fix, subjects: [`address:${ip}`, ...subjectOf(owner)] };
  return { ...finding('address-two-owners', details), whose: names.text(owner), owner, changes: [] };
}
