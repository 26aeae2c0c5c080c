import { bridgePodMac } from '../../dataplane/bridge-pod-mac.ts';
import { familyOf, hostPrefix } from '../../dataplane/ip-prefix.ts';
import { DEFAULT_LINK_GROUP } from '../../dataplane/link-group.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import { DIRECT_LINK_GROUP, MAX_ENI_SLOT } from '../../dataplane/numbers.ts';
import type { CriSandbox } from '../cri/sandbox-view.ts';
import type { EniRecord } from '../journal/journal-content.ts';
import { type Lease, type LeasedAddress, leaseKey, unknownOwner } from '../journal/lease.ts';
import { ON_LINK_ENI_ID, type Supply, type SupplyEni } from '../journal/supply.ts';
import type { EniEvidence, KernelEvidence, PeerEvidence, VethEvidence } from '../node/kernel-evidence.ts';
import { blockOfAddress, podCidrId } from '../pod-cidr/pod-cidr-supply.ts';

/** All sources of facts about Pods that are in no journal. */
export type AdoptSources = {
  readonly kernel: KernelEvidence;
  readonly supply: Supply | undefined;
  readonly sandboxes: readonly CriSandbox[];
  /** What is configured inside the sandboxes, by lease key. */
  readonly peers: ReadonlyMap<string, PeerEvidence>;
  /** Addresses that the runtime reports, by sandbox id. */
  readonly sandboxIps: ReadonlyMap<string, readonly string[]>;
  /** True when another program wires all Pods: then an address that the runtime reports is not of our making. */
  readonly areOfOthers?: boolean;
  /** Blocks of the node's GlobalRoute Pods, as configured or last known. */
  readonly podCidrs?: readonly string[];
};

/** The records to write into the new journal before serving. */
type Adoption = {
  readonly enis: readonly EniRecord[];
  readonly leases: readonly Lease[];
  readonly ruleMode: RuleMode | undefined;
  /** ENIs that Pods use and the supply does not list; only what the kernel knows of them is filled in. */
  readonly unknownEnis: readonly SupplyEni[];
};

/**
 * Rebuilds ENI records and leases from the kernel, the supply and the runtime. An address is never given twice: where
 * its owner cannot be determined, it gets a lease that garbage collection may end, and does not become free.
 */
export function planAdoption(sources: AdoptSources): Adoption {
  const matched = matchEnis(sources);
  const byTable = new Map(matched.map(({ record, eni }) => [record.table, eni]));
  const sandboxById = new Map(sources.sandboxes.map((sandbox) => [sandbox.id, sandbox]));
  const eniOfIp = (ip: string): SupplyEni | undefined =>
    [...matched.map(({ eni }) => eni), ...(sources.supply?.enis ?? [])].find(({ eniId, addresses }) => {
      return eniId !== ON_LINK_ENI_ID && addresses.some((address) => address.ip === ip);
    });
  const wired = sources.kernel.veths.flatMap((veth): readonly Lease[] => {
    if (veth.table === DIRECT_LINK_GROUP) return [exclusiveLease(veth, sandboxById, sources)];
    const ofBlock = veth.table === DEFAULT_LINK_GROUP ? bridgeLease(veth, sandboxById, sources) : [];
    if (ofBlock.length > 0) return ofBlock;
    // Where another program changed the group, an address says which ENI it is.
    const eni = byTable.get(veth.table) ?? ipsOf(veth, sources).flatMap((ip) => eniOfIp(ip) ?? [])[0];
    return eni === undefined ? [] : [wiredLease(veth, eni, sandboxById, sources)];
  });
  const held = new Set<string>();
  /** Each address is in one lease: the first. */
  const once = (leases: readonly Lease[]): readonly Lease[] =>
    leases.flatMap((lease) => {
      const addresses = lease.addresses.filter(({ ip }) => !held.has(ip));
      for (const { ip } of addresses) held.add(ip);
      return addresses.length === 0 && lease.plugin !== 'direct-eni' ? [] : [{ ...lease, addresses }];
    });
  const ofLinks = once(wired);
  const ofRules = once(
    sources.kernel.ipams.flatMap(({ ip, table }) => {
      const eni = byTable.get(table);
      return eni === undefined ? [] : [ipamLease(ip, eni, sources)];
    }),
  );
  const withUplink = once(
    (sources.kernel.ruledByOthers ?? []).flatMap((ip): readonly Lease[] => {
      const eni = matched.find(({ eni: { addresses } }) => addresses.some((address) => address.ip === ip))?.eni;
      return eni === undefined ? [] : [{ ...ipamLease(ip, eni, sources), uplink: true }];
    }),
  );
  // The runtime alone is witness enough that an address is in use.
  const ready = sources.areOfOthers === true ? [] : sources.sandboxes.filter(({ state }) => state === 'ready');
  const reported = once(
    ready.flatMap(({ id }) =>
      (sources.sandboxIps.get(id) ?? []).flatMap((ip): readonly Lease[] => {
        const eni = eniOfIp(ip);
        return eni === undefined ? [] : [ipamLease(ip, eni, sources)];
      }),
    ),
  );
  return {
    enis: matched.map(({ record }) => record),
    leases: [...ofLinks, ...[ofRules, withUplink, reported].flatMap(mergeFamilies)],
    ruleMode: sources.kernel.ruleMode,
    unknownEnis: matched.filter(({ isKnown }) => !isKnown).map(({ eni }) => eni),
  };
}

/**
 * Creation time of an adopted lease, which is not known. It is the earliest possible time, so that a DEL that was
 * spooled before the adoption still counts as later than the lease.
 */
const LONG_AGO_MS = 0;

type MatchedEni = { readonly record: EniRecord; readonly eni: SupplyEni; readonly isKnown: boolean };

function matchEnis(sources: AdoptSources): readonly MatchedEni[] {
  const { kernel, supply } = sources;
  const { enis, veths } = kernel;
  const taken = new Set(enis.flatMap(({ slot }) => slot ?? []));
  return enis.flatMap((evidence): readonly MatchedEni[] => {
    const primaryIps = new Set(evidence.primary.map(({ ip }) => ip));
    const podIps = new Set(
      veths.filter(({ table }) => table === evidence.table).flatMap((veth) => ipsOf(veth, sources)),
    );
    // Match by the link's MAC, else by the ENI's own address, else by an address of one of its Pods: after a flush of
    // routes and rules only the last is left.
    const known =
      supply?.enis.find(({ mac }) => mac === evidence.mac) ??
      supply?.enis.find(({ primary }) => primary.some(({ ip }) => primaryIps.has(ip))) ??
      supply?.enis.find(({ addresses }) => addresses.some(({ ip }) => podIps.has(ip)));
    const eni = known ?? unknownEni(evidence);
    const slot = evidence.slot ?? freeSlot(taken);
    taken.add(slot);
    if (slot > MAX_ENI_SLOT) return [];
    return [
      { record: { eniId: eni.eniId, mac: eni.mac, table: evidence.table, slot }, eni, isKnown: known !== undefined },
    ];
  });
}

/**
 * Returns a veth's addresses: those with a host route to it and those inside the Pod; without either, those that the
 * runtime reports. A flush of the host's routes removes the first.
 */
function ipsOf({ containerId, ifName, ips }: VethEvidence, { peers, sandboxIps }: AdoptSources): readonly string[] {
  const inside = peers.get(leaseKey({ containerId, ifName }))?.ips ?? [];
  const known = [...new Set([...ips, ...inside])];
  return known.length > 0 ? known : (sandboxIps.get(containerId) ?? []);
}

function freeSlot(taken: ReadonlySet<number>): number {
  let slot = 1;
  while (taken.has(slot)) slot++;
  return slot;
}

function unknownEni({ table, mac = '', primary }: EniEvidence): SupplyEni {
  return {
    eniId: `unknown-table-${table}`,
    mac,
    primary: primary.flatMap(({ ip, gateway }) =>
      gateway === undefined ? [] : [{ ip, family: familyOf(ip), gateway, subnetCidr: hostPrefix(ip) }],
    ),
    attached: false,
    draining: true,
    addresses: [],
  };
}

function wiredLease(
  veth: VethEvidence,
  eni: SupplyEni,
  sandboxById: ReadonlyMap<string, CriSandbox>,
  sources: AdoptSources,
): Lease {
  const { containerId, ifName, name, mac, ifindex, mtu } = veth;
  const peer = sources.peers.get(leaseKey({ containerId, ifName }));
  const sandbox = sandboxById.get(containerId);
  return {
    ...{ containerId, ifName, mtu },
    network: '',
    plugin: 'route-eni',
    netns: peer?.netns ?? '',
    ...podOf(sandbox),
    addresses: ipsOf(veth, sources).map((ip) => addressOn(eni, ip)),
    eniId: eni.eniId,
    state: 'active',
    hostVeth: { name, mac, ifindex },
    ...(peer === undefined ? {} : { podMac: peer.podMac }),
    createdAtMs: LONG_AGO_MS,
  };
}

/**
 * Rebuilds the lease of a whole ENI. The ENI is identified by the MAC of the interface in the Pod, or by an address
 * that is routed to the Pod. Without either, the lease gets a placeholder ENI id; it ends as any other lease does.
 */
function exclusiveLease(
  veth: VethEvidence,
  sandboxById: ReadonlyMap<string, CriSandbox>,
  sources: AdoptSources,
): Lease {
  const { containerId, ifName, name, mac, ifindex, mtu } = veth;
  const peer = sources.peers.get(leaseKey({ containerId, ifName }));
  const ips = ipsOf(veth, sources);
  const enis = sources.supply?.direct?.enis ?? [];
  const eni =
    enis.find((one) => one.mac === peer?.podMac) ??
    enis.find(({ primary }) => primary.some(({ ip }) => ips.includes(ip)));
  const eniId = eni?.eniId ?? `unknown-mac-${peer?.podMac ?? containerId}`;
  const nicMac = peer?.podMac ?? eni?.mac ?? '';
  return {
    ...{ containerId, ifName, mtu, eniId },
    network: '',
    plugin: 'direct-eni',
    netns: peer?.netns ?? '',
    ...podOf(sandboxById.get(containerId)),
    addresses: ips.map((ip) => ({ ip, family: familyOf(ip), eniId, assignmentId: eni?.assignmentId ?? '' })),
    state: 'active',
    hostVeth: { name, mac, ifindex },
    podMac: nicMac,
    nic: {
      ...{ mac: nicMac, primary: eni?.primary.filter(({ ip }) => ips.includes(ip)) ?? [] },
      // Name and MTU of the interface are the Pod's to change: it gets a name by its MAC, and the MTU of the veth beside it.
      ...{ hostName: '', mtu },
      sideMac: peer?.nic?.sideMac ?? '',
    },
    createdAtMs: LONG_AGO_MS,
  };
}

/**
 * Rebuilds the lease of a GlobalRoute Pod: its link is in no ENI's group, and an address in it lies in a block. Without a
 * known block nothing is adopted: the link may be an ENI Pod's whose group another program changed.
 */
function bridgeLease(
  veth: VethEvidence,
  sandboxById: ReadonlyMap<string, CriSandbox>,
  sources: AdoptSources,
): readonly Lease[] {
  const { containerId, ifName, name, mac, ifindex, mtu } = veth;
  const peer = sources.peers.get(leaseKey({ containerId, ifName }));
  const onLink = sources.supply?.enis.find(({ eniId }) => eniId === ON_LINK_ENI_ID)?.addresses ?? [];
  const blocks = [...sources.kernel.blocks, ...(sources.podCidrs ?? []), ...onLink.map(({ ip }) => `${ip}/32`)];
  for (const ip of ipsOf(veth, sources)) {
    const cidr = blockOfAddress(ip, blocks);
    if (cidr === undefined) continue;
    // No podCIDR is so small: it is an address of the primary interface.
    const eniId = cidr.endsWith('/32') ? ON_LINK_ENI_ID : podCidrId(cidr);
    const isOnBridge = veth.isPort === true || peer?.podMac === bridgePodMac(ip);
    const lease: Lease = {
      ...{ containerId, ifName, mtu, eniId },
      network: '',
      plugin: 'bridge',
      netns: peer?.netns ?? '',
      ...podOf(sandboxById.get(containerId)),
      addresses: [{ ip, family: familyOf(ip), eniId, assignmentId: '' }],
      state: 'active',
      hostVeth: { name, mac, ifindex },
      ...(peer === undefined ? {} : { podMac: peer.podMac }),
      block: { cidr, wiring: isOnBridge ? 'bridge' : 'routed' },
      createdAtMs: LONG_AGO_MS,
    };
    return [lease];
  }
  return [];
}

function ipamLease(ip: string, eni: SupplyEni, { sandboxes, sandboxIps }: AdoptSources): Lease {
  const sandbox = sandboxes.find(({ id }) => sandboxIps.get(id)?.includes(ip));
  return {
    // If the runtime does not know the address, its owner has no name; the lease holds the address all the same.
    containerId: sandbox?.id ?? unknownOwner(ip),
    ifName: 'eth0',
    network: '',
    plugin: 'ipam',
    netns: '',
    ...podOf(sandbox),
    addresses: [addressOn(eni, ip)],
    eniId: eni.eniId,
    state: 'active',
    mtu: 0,
    createdAtMs: LONG_AGO_MS,
  };
}

/** Merges leases of the same attachment: one sandbox of a dual-stack node appears as two addresses. */
function mergeFamilies(leases: readonly Lease[]): readonly Lease[] {
  return [...Map.groupBy(leases, (lease) => leaseKey(lease)).values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, addresses: group.flatMap(({ addresses }) => addresses) }];
  });
}

function podOf(sandbox: CriSandbox | undefined): Pick<Lease, 'podNamespace' | 'podName' | 'podUid'> {
  const { podNamespace = '', podName = '', podUid = '' } = sandbox ?? {};
  return { podNamespace, podName, podUid };
}

function addressOn(eni: SupplyEni, ip: string): LeasedAddress {
  const supplied = eni.addresses.find((address) => address.ip === ip);
  return { ip, family: familyOf(ip), eniId: eni.eniId, assignmentId: supplied?.assignmentId ?? '' };
}
