import { networkPrefix } from '../../dataplane/ip-prefix.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import type { CriSandbox } from '../cri/sandbox-view.ts';
import { type Lease, leaseKey, unknownOwner } from '../journal/lease.ts';
import type { PodInterface, PortEvidence } from '../node/bridge-evidence.ts';
import type { Reservation } from '../pod-cidr/host-local-files.ts';
import { podCidrId } from '../pod-cidr/pod-cidr-supply.ts';

/** All sources of facts about Pods that another program put on the bridge. */
export type TakeoverSources = {
  /** Ports of the bridge, ours included. */
  readonly ports: readonly PortEvidence[];
  readonly interfaces: readonly PodInterface[];
  readonly reservations: readonly Reservation[];
  /** Empty when no runtime answers. */
  readonly sandboxes: readonly CriSandbox[];
  /** Namespaces as the runtime names them, by sandbox id. */
  readonly netnsById: ReadonlyMap<string, string>;
  readonly leases: readonly Lease[];
};

/** A Pod to take over: its lease, and its interface, whose side has to be made as ours. */
export type TakenPod = { readonly lease: Lease; readonly inPod: PodInterface };

/** What becomes of the Pods on the bridge that have no lease. */
export type Takeover = {
  readonly pods: readonly TakenPod[];
  /** Pods that cannot be taken over; their addresses are in use all the same. */
  readonly refused: readonly { readonly ip: string; readonly why: string }[];
  /** Reservations that no lease, taken Pod or refused one explains. */
  readonly unexplained: readonly Reservation[];
  /** Ports without a lease whose other end was found in no namespace: a Pod may live there with any address. */
  readonly unseen: readonly PortEvidence[];
};

/**
 * Plans leases for the Pods that another program put on the bridge. What shows such a Pod is an address in a network
 * namespace, on an interface whose peer is a port of the bridge; the files of host-local and the runtime only say whose
 * it is. It keeps its address, gateway and link.
 */
export function planTakeover(sources: TakeoverSources): Takeover {
  const owned = new Set(sources.leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
  const ports = new Map(portsWithoutLease(sources.ports, sources.leases).map((port) => [port.ifindex, port]));
  const taken = new Map<string, TakenPod>();
  const refused = new Map<string, string>();
  const seen = new Set<number>();
  for (const inPod of reservedFirst(sources)) {
    const port = ports.get(inPod.peerIfindex);
    const [address] = inPod.addresses;
    if (port === undefined || address === undefined || owned.has(address.ip) || taken.has(address.ip)) continue;
    const why = refusalOf(inPod);
    if (why !== undefined) {
      refused.set(address.ip, why);
      seen.add(port.ifindex);
      continue;
    }
    taken.set(address.ip, { lease: leaseOf(inPod, port, sources), inPod });
    ports.delete(port.ifindex);
  }
  return {
    pods: [...taken.values()],
    refused: [...refused].map(([ip, why]) => ({ ip, why })),
    unexplained: sources.reservations.filter(({ ip }) => !owned.has(ip) && !taken.has(ip) && !refused.has(ip)),
    unseen: [...ports.values()].filter(({ ifindex }) => !seen.has(ifindex)),
  };
}

/**
 * Returns the ports that no lease names: by the index or, when an ADD was interrupted before the lease had it, by the MAC.
 * The interface of such a port has no address yet, and another one may have a peer of its index.
 */
export function portsWithoutLease(
  ports: readonly PortEvidence[],
  leases: readonly Pick<Lease, 'hostVeth'>[],
): readonly PortEvidence[] {
  const indexes = new Set(leases.map(({ hostVeth }) => hostVeth?.ifindex));
  const macs = new Set(leases.map(({ hostVeth }) => hostVeth?.mac));
  return ports.filter(({ ifindex, mac }) => !indexes.has(ifindex) && !macs.has(mac));
}

/**
 * Interface indexes count from one in each namespace, so the peer of an interface may be another link with the index of a
 * port, in yet another namespace. Those with a reserved address come first, and each port is that of one interface.
 */
function reservedFirst({ interfaces, reservations }: TakeoverSources): readonly PodInterface[] {
  const reserved = new Set(reservations.map(({ ip }) => ip));
  const isReserved = ({ addresses }: PodInterface): boolean => addresses.some(({ ip }) => reserved.has(ip));
  return interfaces.toSorted((a, b) => Number(isReserved(b)) - Number(isReserved(a)));
}

/** The gateway of a block is its first address; a Pod with another one could not keep it. */
function refusalOf({ addresses, gateway, netns, ifName }: PodInterface): string | undefined {
  const [{ ip, prefixLength } = { ip: '', prefixLength: 0 }] = addresses;
  const where = `${ifName} of ${netns}`;
  if (addresses.length > 1) return `${where} has ${addresses.length} addresses`;
  const expected = podCidrOf(`${ip}/${prefixLength}`).gateway;
  if (gateway === expected) return undefined;
  return `${where} has ${gateway === undefined ? 'no default route' : `the gateway ${gateway}`}, and not ${expected}`;
}

function leaseOf(inPod: PodInterface, port: PortEvidence, sources: TakeoverSources): Lease {
  const { ip, prefixLength } = inPod.addresses[0] ?? { ip: '', prefixLength: 0 };
  const cidr = networkPrefix(`${ip}/${prefixLength}`);
  const eniId = podCidrId(cidr);
  const { containerId, ifName } = ownerOf(inPod, ip, sources);
  const { podNamespace = '', podName = '', podUid = '' } = sources.sandboxes.find(({ id }) => id === containerId) ?? {};
  return {
    ...{ containerId, ifName, podNamespace, podName, podUid },
    network: '',
    plugin: 'bridge',
    netns: inPod.netns,
    addresses: [{ ip, family: 4, eniId, assignmentId: '' }],
    eniId,
    state: 'active',
    hostVeth: { name: port.name, mac: port.mac, ifindex: port.ifindex },
    podMac: inPod.mac,
    block: { cidr, wiring: 'bridge' },
    mtu: port.mtu,
    createdAtMs: LONG_AGO_MS,
  };
}

/** When it was made is not known: a DEL that was spooled before counts as later. */
const LONG_AGO_MS = 0;

/**
 * The sandbox is the one whose namespace the interface is in; without a runtime, the one that reserved the address. One
 * that is still unknown gets a name by which no DEL finds it: garbage collection ends it with its namespace.
 */
function ownerOf(
  { netns, ifName }: PodInterface,
  ip: string,
  { reservations, netnsById, leases }: TakeoverSources,
): Pick<Lease, 'containerId' | 'ifName'> {
  const inNetns = [...netnsById].find(([, path]) => path === netns)?.[0];
  const containerId = inNetns ?? reservations.find((one) => one.ip === ip)?.containerId ?? '';
  const key = leaseKey({ containerId, ifName });
  const isTaken = leases.some((lease) => leaseKey(lease) === key);
  return { containerId: containerId === '' || isTaken ? unknownOwner(ip) : containerId, ifName };
}
