/** Names one attachment: one interface of one sandbox. Made by `leaseKey`. */
export type LeaseKey = string;

/**
 * Makes the key of an attachment. Neither part can hold a slash: the CNI specification limits container ids to
 * alphanumerics and `_.-`, and the kernel refuses a slash in interface names.
 * @see CNI SPEC, section "Parameters"
 */
export function leaseKey(containerId: string, ifName: string): LeaseKey {
  return `${containerId}/${ifName}`;
}

/** 4 for IPv4, 6 for IPv6. */
export type Family = 4 | 6;

/** Tells the family of a textual IP address. */
export function familyOf(ip: string): Family {
  return ip.includes(':') ? 6 : 4;
}

/** An address while a Pod has it. */
export type LeasedAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  /** Names this assignment of the address to the ENI; another one after the address was unassigned and came back. */
  readonly assignmentId: string;
};

/**
 * ```
 * pending --activateLease--> active --markReleasing--> releasing --eraseLease--> (gone, its addresses cool)
 * pending --------------------------- markReleasing--> releasing
 * ```
 * pending: the intent is recorded, the kernel may hold all, part or nothing of it. active: wired and verified.
 * releasing: being taken down; the address is held until rules, routes and veth are gone.
 */
export type LeaseState = 'pending' | 'active' | 'releasing';

/**
 * Who wires the link: we (`route-eni`; `direct-eni` gives the Pod an ENI as a whole), or another main plugin that asked us
 * for an address only (`ipam`).
 */
export type LeasePlugin = 'route-eni' | 'ipam' | 'direct-eni';

/** The host end of a Pod's veth pair. */
export type HostVeth = {
  readonly name: string;
  readonly mac: string;
  /** Known once the link exists; DEL acts on it and never on the name. */
  readonly ifindex?: number;
};

/** The interface of an ENI that a Pod has as a whole: all that is needed to bring it back, whatever the supply says by then. */
export type LeasedNic = {
  readonly mac: string;
  /** Its name in the host's namespace. */
  readonly hostName: string;
  /** What the cloud gave it, bytes. */
  readonly mtu: number;
  readonly primary: readonly {
    readonly ip: string;
    readonly family: Family;
    readonly gateway: string;
    /** 'addr/len' */
    readonly subnetCidr: string;
  }[];
  /** MAC of the Pod's end of the link beside it. */
  readonly sideMac: string;
};

/** What one sandbox interface holds on this node. Keyed by `leaseKey(containerId, ifName)`. */
export type Lease = {
  readonly containerId: string;
  readonly ifName: string;
  /** CNI network name. */
  readonly network: string;
  readonly plugin: LeasePlugin;
  /** As the runtime named it (CNI_NETNS). */
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
  /** Of plugin `direct-eni`, and of no other. */
  readonly nic?: LeasedNic;
  /** Bytes. */
  readonly mtu: number;
  /** When its ADD came in, since boot: the wall clock may be set back, and then nothing would seem older than it. */
  readonly createdAtMs: number;
};
