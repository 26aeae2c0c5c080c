import type { Cooldown } from '../journal/journal-content.ts';
import type { Family, LeaseKey } from '../journal/lease.ts';
import type { ClaimMark } from '../journal/supply.ts';

/**
 * What the supply says of an address: `assigned` serves; `releasing` ipamd is taking it back; `missing` the supply no
 * longer lists it (on that ENI), so it is kept only while a lease or a cooldown holds it.
 */
export type SupplyStanding = 'assigned' | 'releasing' | 'missing';

/**
 * ```
 *                lease                 release                     tick at coolUntilMs
 *        free ----------> leased ---------------> cooling ------------------------------> free
 *         ^ |               ^                        |                                    (withdrawn, or dropped,
 *         | | offered,      +-------- forceCool -----+                                     as the supply says)
 *         | v releasing
 *      withdrawn            an address that leaves the supply while free or withdrawn is dropped
 * ```
 * An address with the mark of a claim is none of the pool's: `kept` stands where `free` and `cooling` do, and only the
 * Pod that the mark names leaves it by `leaseKept`. A mark that comes or goes turns `free` into `kept` and back.
 */
export type PoolAddressState = 'free' | 'kept' | 'leased' | 'cooling' | 'withdrawn';

/** Where the supply lists an address. */
export type AddressHome = {
  readonly eniId: string;
  readonly assignmentId: string;
  readonly standing: SupplyStanding;
  readonly pairedIp?: string;
  readonly claim?: ClaimMark;
};

/** One address of the pool. */
export type PoolAddress = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  readonly assignmentId: string;
  readonly state: PoolAddressState;
  readonly standing: SupplyStanding;
  /**
   * True once the agent offered it for release: stays withdrawn until `restore`, or until the supply says that the offer
   * was taken (the address is gone, or came back under another assignment id).
   */
  readonly offered: boolean;
  /** Where the supply lists it now, while a lease still holds it on another ENI. */
  readonly next?: AddressHome;
  readonly pairedIp?: string;
  /** Whose it is beyond one Pod's life. */
  readonly claim?: ClaimMark;
  /** The owner, while leased. */
  readonly leaseKey?: LeaseKey;
  /** While cooling. Times are milliseconds since boot: a wall clock that jumps ahead would end every cooldown at once. */
  readonly coolUntilMs?: number;
  /** Length of the cooldown that runs, milliseconds: the most that may remain of it. */
  readonly cooldownMs?: number;
  /** When its last owner gave it back; absent when nobody had it. */
  readonly freedAtMs?: number;
};

/** An ENI of the pool. */
export type PoolEni = {
  readonly eniId: string;
  /** False while it is draining or not attached: nothing new from it. */
  readonly serves: boolean;
  /** True when ipamd wants it empty: what is free on it is given back at once. */
  readonly draining: boolean;
};

/** All the pool knows. Frozen in spirit: each function returns a new one. */
export type PoolState = {
  /** By IP, in the order of the supply. */
  readonly addresses: ReadonlyMap<string, PoolAddress>;
  /** By ENI id, in the order of the supply. */
  readonly enis: ReadonlyMap<string, PoolEni>;
  /** IPs of each lease, IPv4 first. */
  readonly leases: ReadonlyMap<LeaseKey, readonly string[]>;
  /** Epoch of the supply in force; -1 before the first. */
  readonly epoch: number;
};

/** A pool without any address. */
export const EMPTY_POOL: PoolState = { addresses: new Map(), enis: new Map(), leases: new Map(), epoch: -1 };

/** A function's new state and what it has to say. */
export type Step<R> = { readonly state: PoolState; readonly result: R };

/** Why no address was given, in numbers of addresses of the wanted families. */
export type Exhausted = {
  readonly kind: 'exhausted';
  /** Families that were asked for. */
  readonly want: readonly Family[];
  /** Free on ENIs that serve: too few, not of all families, or being taken back. */
  readonly free: number;
  /** Free on ENIs that do not serve: they are being attached or set up, or drain. */
  readonly unserved: number;
  readonly cooling: number;
  readonly leased: number;
  /** When the next address ends its cooldown. */
  readonly nextCoolAtMs?: number;
};

/** What a lease request brought. */
export type LeaseResult =
  | {
      readonly kind: 'leased';
      /** One per family, IPv4 first, all of one ENI. */
      readonly addresses: readonly PoolAddress[];
      /** False when the key had them already. */
      readonly isNew: boolean;
      /** IPs whose cooldown was cut short: flush their conntrack entries before use. */
      readonly forced: readonly string[];
    }
  | Exhausted;

/** Which addresses to give to whom. */
export type LeaseRequest = {
  readonly key: LeaseKey;
  /** Not empty. */
  readonly families: readonly Family[];
  /** Since boot. */
  readonly nowMs: number;
  /** Only these ENIs may serve (those that are set up in the kernel); all when absent. */
  readonly enis?: ReadonlySet<string>;
};

/** What changed by a new supply. */
export type SupplyResult =
  | {
      readonly kind: 'applied';
      readonly added: readonly string[];
      readonly dropped: readonly string[];
      /** Leased or cooling, and no longer in the supply: kept until the lease or cooldown ends. */
      readonly missing: readonly string[];
    }
  | { readonly kind: 'distrusted'; readonly epoch: number; readonly inForce: number };

/** What came back with the end of a lease. */
export type ReleaseResult =
  | { readonly kind: 'released'; readonly cooldowns: readonly Cooldown[] }
  | { readonly kind: 'unknown' };

/** Two owners for one address: the first known keeps it. */
export type AdoptConflict = { readonly ip: string; readonly owner: LeaseKey; readonly claimant: LeaseKey };

/** Numbers of addresses, for metrics and messages. */
export type PoolCounts = {
  readonly total: number;
  readonly free: number;
  /** Kept for Pods of one name, and without a Pod. */
  readonly kept: number;
  readonly leased: number;
  readonly cooling: number;
  readonly withdrawn: number;
  /** Of the leased and cooling ones: no longer in the supply. */
  readonly missing: number;
};

/** How many addresses the node should have. */
export type PoolDemand = {
  /** Addresses the node should have: in use + cooling + warm, within the limit. */
  readonly desired: number;
  /** In use + cooling, kept addresses left out; so in all that follows. */
  readonly used: number;
  /** Assigned now, less those withdrawn. */
  readonly bound: number;
  /** Free addresses beyond the warm maximum, in the order to give them back: emptiest ENI first. */
  readonly surplus: readonly PoolAddress[];
};
