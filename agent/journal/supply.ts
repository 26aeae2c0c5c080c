import type { Family, LeaseKey } from './lease.ts';

/** What the cloud has given this node, as the pool and the data plane use it: one frozen value per change. */
export type Supply = {
  readonly nodeName: string;
  /** Only grows; a lower one than seen before is an old story and is not believed. 0 when the source has none. */
  readonly epoch: number;
  readonly enis: readonly SupplyEni[];
  readonly warm: WarmTargets;
  /** Most Pod addresses that the node can have now, as far as its subnets give them; absent when they do not limit it. */
  readonly allocatable?: number;
  /** Most public addresses that its Pods can have; absent while nobody says. */
  readonly maxEips?: number;
  /** ENIs that Pods get as a whole; absent on a node that has none and may have none. */
  readonly direct?: DirectSupply;
  /** Pods of the node may keep their addresses; absent: they may not, or nobody says. */
  readonly isStaticIpEnabled?: true;
  /** Kept addresses that went elsewhere while a sandbox here still has them; absent when there is none. */
  readonly takenOver?: readonly TakenOver[];
};

/** A kept address that the cloud routes elsewhere by now, and the attachment on this node that still has it. */
export type TakenOver = { readonly ip: string; readonly leaseKey: LeaseKey };

/** Whose an address is, beyond the life of one Pod. */
export type ClaimMark = {
  readonly namespace: string;
  readonly name: string;
  /** The only Pod that may use it now; absent while none may. */
  readonly uid?: string;
};

/** One ENI of the node. */
export type SupplyEni = {
  readonly eniId: string;
  /** Lower case, with colons. */
  readonly mac: string;
  /** Its own address per family: not for Pods. */
  readonly primary: readonly EniPrimaryAddress[];
  readonly deviceIndex?: number;
  /** False while the cloud is still attaching it, or detaches it: its addresses serve nobody new. */
  readonly attached: boolean;
  /** True when ipamd wants it empty: leases stay, nothing new is given. */
  readonly draining: boolean;
  readonly addresses: readonly SupplyAddress[];
};

/** The ENI's own address in one family, with where its packets go. */
export type EniPrimaryAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly gateway: string;
  /** 'addr/len' */
  readonly subnetCidr: string;
};

/** What the cloud has given this node of ENIs that Pods get as a whole. */
export type DirectSupply = {
  readonly enis: readonly DirectSupplyEni[];
  readonly warm: DirectWarmTargets;
};

/** One such ENI. */
export type DirectSupplyEni = {
  readonly eniId: string;
  /** Lower case, with colons. */
  readonly mac: string;
  /** Its own address per family: the Pod's. */
  readonly primary: readonly EniPrimaryAddress[];
  /** Names this attachment; another one after the ENI was detached and came back. */
  readonly assignmentId: string;
  /** Only an attached one serves. */
  readonly state: 'attaching' | 'attached' | 'detaching';
  /** True when ipamd wants it back as soon as it is nobody's. */
  readonly draining: boolean;
  /** Kept, or prepared, for the Pods of one name: none of the pool's. */
  readonly claim?: ClaimMark;
};

/** How many ENIs beyond those in use a node keeps ready, and its hard limit. */
export type DirectWarmTargets = {
  readonly min: number;
  readonly max: number;
  readonly limit?: number;
  /** Places of the limit that ENIs of claims are about to have: none of the pool's. */
  readonly awaited?: number;
};

/** An address that the cloud routes to the ENI, for a Pod. */
export type SupplyAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly assignmentId: string;
  /** releasing: ipamd has decided to take it back. */
  readonly state: 'assigned' | 'releasing';
  /** The address of the other family that is meant to go to the same Pod. */
  readonly pairedIp?: string;
  /** Kept for the Pods of one name: none of the pool's. */
  readonly claim?: ClaimMark;
};

/** How many addresses beyond those in use a node keeps ready, and its hard limit. */
export type WarmTargets = {
  readonly min: number;
  readonly max: number;
  /** maxRouteENI x maxIPPerENI; absent when nobody says. */
  readonly limit?: number;
  /** Gives back all surplus at a time; one by one when absent. */
  readonly isQuickRelease?: boolean;
  /** Addresses in use are counted as at least so many; 0 when absent. */
  readonly floor?: number;
  /** How many of `limit` kept addresses have, or are about to have; 0 when absent. */
  readonly keptPlaces?: number;
};

/** Names the Pods that an address is kept for: `namespace/name`. Pure. */
export function claimKey({ namespace, name }: Pick<ClaimMark, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}
