import type { Family } from '../../dataplane/ip-prefix.ts';
import type { LeaseKey } from './lease.ts';

/** What the cloud has assigned to this node, as the pool and the data plane use it: one frozen value per change. */
export type Supply = {
  readonly nodeName: string;
  /**
   * Only grows. A supply with a lower epoch than one seen before is outdated and not put in force. 0 when the source
   * has none.
   */
  readonly epoch: number;
  readonly enis: readonly SupplyEni[];
  readonly warm: WarmTargets;
  /**
   * Maximum number of Pod addresses that the node can have now, as its subnets allow; absent when they do not limit it.
   */
  readonly allocatable?: number;
  /** Maximum number of public addresses of its Pods; absent while not known. */
  readonly maxEips?: number;
  /** ENIs that Pods get as a whole; absent on a node that has none and may have none. */
  readonly direct?: ExclusiveSupply;
  /** Pods of the node may have static IPs; absent: they may not, or it is not known. */
  readonly isStaticIpEnabled?: true;
  /**
   * Static addresses that were moved to another node while a sandbox here still has them; absent when there is none.
   */
  readonly takenOver?: readonly TakenOver[];
  /**
   * Addresses that are, or are about to be, targets of load balancers; absent when no controller publishes them.
   */
  readonly registeredIps?: readonly string[];
};

/**
 * Stands in the place of an ENI for addresses that belong to the primary interface itself. Their Pods have a route in the
 * main table, and no table of their own.
 */
export const ON_LINK_ENI_ID = 'on-link';

/** In a claim mark: any Pod of the name may have the address, one after the other. No uid of Kubernetes is this. */
export const ANY_UID = '*';

/** What of a supply the node does not take: a whole ENI, or one of its addresses (`ip`). */
export type SupplyRefusal = { readonly eniId: string; readonly ip?: string; readonly text: string };

/**
 * A static address that the cloud already routes to another node, and the attachment on this node that still has it.
 */
export type TakenOver = { readonly ip: string; readonly leaseKey: LeaseKey };

/** A claim mark: names the Pods of one name that have a static address or ENI, beyond the life of one Pod. */
export type ClaimMark = {
  readonly namespace: string;
  readonly name: string;
  /** The only Pod that may use it now, or `ANY_UID`; absent while none may. */
  readonly uid?: string;
};

/** One ENI of the node. */
export type SupplyEni = {
  readonly eniId: string;
  /** Lower case, with colons. */
  readonly mac: string;
  /** Its own address per family; not for Pods. */
  readonly primary: readonly EniPrimaryAddress[];
  readonly deviceIndex?: number;
  /** False while the cloud attaches or detaches it: its addresses serve no new Pod. */
  readonly attached: boolean;
  /** True when ipamd empties it: leases stay, new ones are not made. */
  readonly draining: boolean;
  readonly addresses: readonly SupplyAddress[];
};

/** The ENI's own address in one family, with its gateway and subnet. */
export type EniPrimaryAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly gateway: string;
  /** 'addr/len' */
  readonly subnetCidr: string;
};

/** The ENIs of this node that Pods get as a whole, and how many it should have. */
export type ExclusiveSupply = {
  readonly enis: readonly ExclusiveSupplyEni[];
  readonly warm: ExclusiveWarmTargets;
};

/** One whole ENI. */
export type ExclusiveSupplyEni = {
  readonly eniId: string;
  /** Lower case, with colons. */
  readonly mac: string;
  /** Its own address per family; the Pod that has the ENI uses it. */
  readonly primary: readonly EniPrimaryAddress[];
  /** Id of this attachment; it is another one after the ENI was detached and attached again. */
  readonly assignmentId: string;
  /** Only an attached ENI serves. */
  readonly state: 'attaching' | 'attached' | 'detaching';
  /** True when ipamd takes it back as soon as no Pod has it. */
  readonly draining: boolean;
  /** Present on a static ENI, or one that ipamd prepared for the Pods of one name; it does not belong to the pool. */
  readonly claim?: ClaimMark;
};

/** How many ENIs beyond those in use a node keeps ready, and its hard limit. */
export type ExclusiveWarmTargets = {
  readonly min: number;
  readonly max: number;
  readonly limit?: number;
  /** Part of the limit for ENIs with a claim that are not here yet; not available to the pool. */
  readonly awaited?: number;
};

/** An address that the cloud routes to the ENI, for a Pod. */
export type SupplyAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly assignmentId: string;
  /** releasing: ipamd has decided to unassign it. */
  readonly state: 'assigned' | 'releasing';
  /** Its partner of the other family; both are meant for the same Pod. */
  readonly pairedIp?: string;
  /** Present on a static address; it does not belong to the pool. */
  readonly claim?: ClaimMark;
};

/** How many addresses beyond those in use a node keeps ready, and its hard limit. */
export type WarmTargets = {
  readonly min: number;
  readonly max: number;
  /** maxRouteENI x maxIPPerENI; absent when not known. */
  readonly limit?: number;
  /** Releases all surplus at a time; one by one when absent. */
  readonly isQuickRelease?: boolean;
  /** At least so many addresses count as in use; 0 when absent. */
  readonly floor?: number;
  /** Part of `limit` that static addresses use, or will use soon; 0 when absent. */
  readonly keptPlaces?: number;
};

/** Reports whether all surplus is released at a time: a flag of the agent or the node's own setting says so. */
export function isQuickRelease(flag: boolean, warm: WarmTargets): boolean {
  return flag || warm.isQuickRelease === true;
}

/** Names the Pods that an address is static for: `namespace/name`; a name alone where it is no Pod. */
export function claimKey({ namespace, name }: Pick<ClaimMark, 'namespace' | 'name'>): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}
