import type { Family } from '../../dataplane/ip-prefix.ts';
import type { Cooldown } from '../journal/journal-content.ts';
import type { LeaseKey } from '../journal/lease.ts';
import type { ClaimMark } from '../journal/supply.ts';
import type { BriefMarks } from './brief.ts';

/**
 * State of an address in the supply. `assigned`: it serves; `releasing`: ipamd is taking it back; `missing`: the supply
 * no longer lists it (on that ENI), and only a lease or a cooldown holds it.
 */
type SupplyState = 'assigned' | 'releasing' | 'missing';

/**
 * ```
 *                lease                 release                     tick at coolUntilMs
 *        free ----------> leased ---------------> cooling ------------------------------> free
 *         ^ |               ^                        |                                    (withdrawn, or dropped,
 *         | | offered,      +-------- forceCool -----+                                     as the supply says)
 *         | v releasing
 *      withdrawn            an address that leaves the supply is dropped, once nothing holds it
 * ```
 * An address with a claim mark is static and does not belong to the pool: for it `kept` replaces `free`, and only the
 * Pod that the mark names gets it, by `leaseStatic`. When a mark appears or disappears, `free` becomes `kept` and back.
 * It does not cool for the next Pod of the name that its last Pod had, and so is `kept` at once; it cools as soon as the
 * mark is of another name, or gone.
 */
type PoolAddressState = 'free' | 'kept' | 'leased' | 'cooling' | 'withdrawn';

/** The supply's entry for an address. */
export type SupplyEntry = {
  readonly eniId: string;
  readonly assignmentId: string;
  readonly supplyState: SupplyState;
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
  readonly supplyState: SupplyState;
  /**
   * True once the agent offered it for release. It stays withdrawn until `restore`, or until the supply shows that
   * ipamd took it (the address is not listed, or has another assignment id).
   */
  readonly offered: boolean;
  /** Its entry in the supply now, while a lease still holds it on another ENI. */
  readonly next?: SupplyEntry;
  readonly pairedIp?: string;
  /** The claim mark of a static address. */
  readonly claim?: ClaimMark;
  /** The owner, while leased. */
  readonly leaseKey?: LeaseKey;
  /** The `claimKey` of its last Pod. Only while its cooldown runs; absent where that is not known. */
  readonly podKey?: string;
  /**
   * Only while its cooldown runs. Times are milliseconds since boot: a wall clock that jumps ahead would end every cooldown at
   * once.
   */
  readonly coolUntilMs?: number;
  /** Length of the running cooldown, milliseconds: the maximum that may remain of it. */
  readonly cooldownMs?: number;
  /** When its last owner released it; absent when it was never leased. */
  readonly freedAtMs?: number;
} & BriefMarks;

/** An ENI of the pool. */
export type PoolEni = {
  readonly eniId: string;
  /** False while it is draining or not attached: no new leases on it. */
  readonly serves: boolean;
  /** True when ipamd empties it: its free addresses are offered at once. */
  readonly draining: boolean;
};

/** The whole state of the pool. Never changed in place: each function returns a new one. */
export type PoolState = {
  /** By IP, in the order of the supply. */
  readonly addresses: ReadonlyMap<string, PoolAddress>;
  /** By ENI id, in the order of the supply. */
  readonly enis: ReadonlyMap<string, PoolEni>;
  /** IPs of each lease, IPv4 first. */
  readonly leases: ReadonlyMap<LeaseKey, readonly string[]>;
  /** Epoch of the supply in force; -1 before the first. */
  readonly epoch: number;
  /** Addresses that load balancers may still have as targets; absent: no controller publishes any. */
  readonly registered?: ReadonlySet<string>;
  /** Addresses without a lease that another program has on this node; absent: none. */
  readonly strangers?: ReadonlySet<string>;
};

/** A pool without any address. */
export const EMPTY_POOL: PoolState = { addresses: new Map(), enis: new Map(), leases: new Map(), epoch: -1 };

/** The new state and the result of a function. */
export type Step<R> = { readonly state: PoolState; readonly result: R };

/** Why no address was leased, in numbers of addresses of the requested families. */
export type Exhausted = {
  readonly kind: 'exhausted';
  /** The requested families. */
  readonly want: readonly Family[];
  /** Free on ENIs that serve: too few, not of all families, or being released. */
  readonly free: number;
  /** Free on ENIs that do not serve: they are being attached or set up, or are draining. */
  readonly unserved: number;
  readonly cooling: number;
  readonly leased: number;
  /** Without a Pod, and still targets of load balancers; absent when there is none. */
  readonly registered?: number;
  /** Without a lease, and in use by another program on this node; absent when there is none. */
  readonly strangers?: number;
  /** When the next address ends its cooldown. */
  readonly nextCoolAtMs?: number;
};

/** The result of a lease request. */
export type LeaseResult =
  | {
      readonly kind: 'leased';
      /** One per family, IPv4 first, all on one ENI. */
      readonly addresses: readonly PoolAddress[];
      /** False when the key had them already. */
      readonly isNew: boolean;
      /** IPs whose cooldown was cut short: flush their conntrack entries before use. */
      readonly forced: readonly string[];
      /** Some of them had an owner that lived: it is pressure that they are reused. Absent: none. */
      readonly isUnderPressure?: true;
    }
  | Exhausted;

/** A request for addresses. */
export type LeaseRequest = {
  readonly key: LeaseKey;
  /** Not empty. */
  readonly families: readonly Family[];
  /** Milliseconds since boot. */
  readonly nowMs: number;
  /** The ENIs that may serve (those that are set up in the kernel); all when absent. */
  readonly enis?: ReadonlySet<string>;
};

/** What a new supply changed. */
export type SupplyResult =
  | {
      readonly kind: 'applied';
      readonly added: readonly string[];
      readonly dropped: readonly string[];
      /** Leased or cooling, and no longer in the supply: they stay until the lease or cooldown ends. */
      readonly missing: readonly string[];
    }
  | { readonly kind: 'distrusted'; readonly epoch: number; readonly inForce: number };

/** The result of ending a lease. */
export type ReleaseResult =
  | { readonly kind: 'released'; readonly cooldowns: readonly Cooldown[] }
  | { readonly kind: 'unknown' };

/** Two owners of one address: the first known owner has it. */
export type AdoptConflict = { readonly ip: string; readonly owner: LeaseKey; readonly claimant: LeaseKey };

/** Numbers of addresses, for metrics and messages. */
export type PoolCounts = {
  readonly total: number;
  readonly free: number;
  /** Static addresses without a Pod. */
  readonly kept: number;
  readonly leased: number;
  readonly cooling: number;
  readonly withdrawn: number;
  /** Leased and cooling addresses that are no longer in the supply. */
  readonly missing: number;
};

/** The demand of the pool. */
export type PoolDemand = {
  /** Desired number of addresses: in use + cooling + warm, within the limit. */
  readonly desired: number;
  /**
   * In use + cooling + still registered with load balancers, without static addresses, and without those of failed
   * sandboxes that can be given; the same holds for all that follows.
   */
  readonly used: number;
  /** Assigned now, without withdrawn ones; those of failed sandboxes count. */
  readonly bound: number;
  /** Free addresses beyond the warm maximum, in the order of release: emptiest ENI first. */
  readonly surplus: readonly PoolAddress[];
};
