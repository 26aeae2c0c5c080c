import type { Family } from '../../dataplane/ip-prefix.ts';
import type { GrWiring } from '../../dataplane/network.ts';

/** The key of one attachment: one interface of one sandbox. Made by `leaseKey`. */
export type LeaseKey = string;

/**
 * Makes the key of an attachment. Neither part can hold a slash: the CNI specification limits container ids to
 * alphanumerics and `_.-`, and the kernel refuses a slash in interface names.
 * @see CNI SPEC, section "Parameters"
 */
export function leaseKey({ containerId, ifName }: Pick<Lease, 'containerId' | 'ifName'>): LeaseKey {
  return `${containerId}/${ifName}`;
}

const UNKNOWN_OWNER = 'unknown-';

/**
 * Makes the container id of a lease whose sandbox was not found: the lease holds its addresses, no DEL finds it, and garbage
 * collection ends it with its namespace.
 */
export function unknownOwner(of: string): string {
  return UNKNOWN_OWNER + of.replaceAll(':', '-');
}

/** Reports whether a container id was made by `unknownOwner`. */
export function isUnknownOwner(containerId: string): boolean {
  return containerId.startsWith(UNKNOWN_OWNER);
}

/** An address that a lease has. */
export type LeasedAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  /**
   * Id of this assignment of the address to the ENI; it is another one after the address was unassigned and assigned
   * again.
   */
  readonly assignmentId: string;
};

/**
 * ```
 * pending --activateLease--> active --markReleasing--> releasing --eraseLease--> (deleted, its addresses cool)
 * pending --------------------------- markReleasing--> releasing
 * ```
 * pending: the intent is recorded; the kernel may hold all, part or nothing of it. active: wired and verified.
 * releasing: the teardown runs; the address has its owner until rules, routes and veth are deleted.
 */
type LeaseState = 'pending' | 'active' | 'releasing';

/**
 * Who wires the link: the agent (`route-eni`; `direct-eni` gives the Pod a whole ENI; `bridge` an address of the node's
 * podCIDR), or another main plugin that requested only an address (`ipam`).
 */
export type LeasePlugin = 'route-eni' | 'ipam' | 'direct-eni' | 'bridge';

/** The host end of a Pod's veth pair. */
type HostVeth = {
  readonly name: string;
  readonly mac: string;
  /** Known once the link exists; DEL uses it and never the name. */
  readonly ifindex?: number;
};

/** The interface of a whole ENI in a Pod: all that is needed to bring it back, whatever the supply then lists. */
export type LeasedNic = {
  readonly mac: string;
  /** Its name in the host's namespace. */
  readonly hostName: string;
  /** MTU of the interface before the Pod got it, bytes. */
  readonly mtu: number;
  readonly primary: readonly {
    readonly ip: string;
    readonly family: Family;
    readonly gateway: string;
    /** 'addr/len' */
    readonly subnetCidr: string;
  }[];
  /** MAC of the Pod's end of the veth pair beside it. */
  readonly sideMac: string;
};

/** The block of a GlobalRoute Pod's address, and how the Pod was wired: both stay as they were. */
type LeasedBlock = {
  /** 'addr/len', with host bits zero. */
  readonly cidr: string;
  readonly wiring: GrWiring;
};

/** What one interface of a sandbox has on this node. Keyed by `leaseKey`. */
export type Lease = {
  readonly containerId: string;
  readonly ifName: string;
  /** CNI network name. */
  readonly network: string;
  readonly plugin: LeasePlugin;
  /** Path as the runtime named it (CNI_NETNS). */
  readonly netns: string;
  /** Empty when the runtime is not Kubernetes; so are the next two. */
  readonly podNamespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** One per family, IPv4 first; all on `eniId`. */
  readonly addresses: readonly LeasedAddress[];
  readonly eniId: string;
  readonly state: LeaseState;
  readonly hostVeth?: HostVeth;
  readonly podMac?: string;
  /** Present for plugin `direct-eni`, and for no other. */
  readonly nic?: LeasedNic;
  /** Only for plugin `ipam`: the main plugin keeps the rules and routes of the address, and the agent has none for it. */
  readonly uplink?: true;
  /** Present for plugin `bridge`, and for no other. */
  readonly block?: LeasedBlock;
  /** Bytes. */
  readonly mtu: number;
  /**
   * When its ADD was received, milliseconds since boot: the wall clock may be set back, and then a later DEL would seem
   * older than the lease.
   */
  readonly createdAtMs: number;
};
