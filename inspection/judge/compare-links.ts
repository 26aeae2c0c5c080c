import { leaseKey } from '../../agent/journal/lease.ts';
import { ON_LINK_ENI_ID } from '../../agent/journal/supply.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import type { PodNetwork } from '../../dataplane/network.ts';
import { ownAddress, ownPrefix } from '../../netlink/address-message.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId } from '../catalogue/element-id.ts';
import type { DesiredNode } from '../desired/desired-of.ts';
import { isAbsentEni } from '../desired/match-recorded-enis.ts';
import type { DifferenceOwner, ObjectNames } from '../model/build-names.ts';
import { keyOfLink } from '../node/find-pod-links.ts';
import type { AgentFacts, NodeFacts } from '../node/node-facts.ts';
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
  agent: AgentFacts,
  host: NodeFacts['host'],
  names: ObjectNames,
): readonly Difference[] {
  // Addresses of the primary interface are on no ENI.
  const supplied = (agent.journal.supply?.enis ?? []).filter(({ eniId }) => eniId !== ON_LINK_ENI_ID);
  const planned = new Set(desired.enis.map((eni) => eni.eniId));
  const macs = new Set(host.links.map(permanentMac));
  const missing = [
    ...desired.enis.filter(isAbsentEni),
    ...supplied.filter((eni) => eni.attached && !planned.has(eni.eniId) && !macs.has(eni.mac)),
  ].map(({ eniId: id, mac }): Difference => {
    const owner: DifferenceOwner = { kind: 'eni', eniId: id };
    const fix = [`look at ${id} in the cloud and at \`kubectl describe nec\`; ipamd attaches it again`];
    const details = { what: `no link has MAC ${mac}: ENI ${id} is not on this node`, fix, subjects: [eniId(id)] };
    return { ...finding('eni-detached', details), whose: names.text(owner), owner, changes: [] };
  });
  return [
    ...missing,
    ...desired.enis.filter((eni) => !isAbsentEni(eni)).flatMap((eni) => connectedRoutes(eni, host, names)),
  ];
}

function connectedRoutes(
  eni: DesiredNode['enis'][number],
  host: NodeFacts['host'],
  names: ObjectNames,
): readonly Difference[] {
  return host.addresses
    .filter(({ ifindex, family, prefixlen }) => ifindex === eni.ifindex && family === AF_INET && prefixlen < 32)
    .map((address): Difference => {
      const owner: DifferenceOwner = { kind: 'eni', eniId: eni.eniId };
      const prefix = ownPrefix(address);
      const details = {
        what: `${eni.ifname} has ${prefix}, whose connected route leads the node's own traffic out of the ENI`,
        fix: [
          `ip address del ${prefix} dev ${eni.ifname}`,
          `configure NetworkManager, networkd, cloud-init or the DHCP client to leave ${eni.ifname} alone`,
        ],
        subjects: [eniId(eni.eniId), linkId(eni.ifindex)],
      };
      return { ...finding('eni-connected-route', details), whose: names.text(owner), owner, changes: [] };
    });
}

/** Input for the comparison of links and leases. */
type LinkSnapshot = {
  readonly desired: DesiredNode;
  readonly facts: NodeFacts;
  readonly agent: AgentFacts;
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
    ...lostVeths(facts, agent).flatMap((link) => lostVeth(link, peers.get(link.ifindex))),
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
