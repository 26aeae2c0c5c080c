import type { RuleMode } from '../../dataplane/network.ts';
import type { Family, Lease } from './lease.ts';
import type { Supply } from './supply.ts';

/** An address that nobody may have yet. */
export type Cooldown = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  readonly assignmentId: string;
  /** When its last owner gave it back. Times are milliseconds since boot, which the journal does not outlive. */
  readonly freedAtMs: number;
  readonly coolUntilMs: number;
  /** Full length: bounds what remains, whatever clock wrote it. */
  readonly cooldownMs: number;
  /** The ENI itself cools, a whole one, of which this is the first own address. */
  readonly isWholeEni?: true;
};

/**
 * An address that the agent gives back: recorded and withdrawn from use before it is published, and out of use until a
 * guarded write of the agent took the offer out, or the supply says that it was taken.
 */
export type Offer = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  /** This assignment is offered, and no later one of the same address. */
  readonly assignmentId: string;
  /** The ENI itself is offered, a whole one, of which this is the first own address. */
  readonly isWholeEni?: true;
};

/** What was decided for an ENI when it was first set up; stays for the ENI's life, whatever its ifindex does. */
export type EniRecord = {
  readonly eniId: string;
  readonly mac: string;
  /** Routing table: 4000 + the first ifindex. */
  readonly table: number;
  /** 1 to 255; the firewall mark is `slot << shift(mask)`. */
  readonly slot: number;
};

/** All that a journal holds. */
export type JournalContent = {
  readonly leases: readonly Lease[];
  readonly cooldowns: readonly Cooldown[];
  readonly enis: readonly EniRecord[];
  /** Absent when there is none. */
  readonly offers?: readonly Offer[];
  /** The last supply that was put in force, with its epoch. */
  readonly supply?: Supply;
  /** The rule mode in force. */
  readonly ruleMode?: RuleMode;
  /** Names this journal: what the agent wrote into the cluster under another name is of a life that is over. */
  readonly life?: string;
};

/** Where the content of a journal comes from. Whether Pods may live which it does not know, `needsAdoption` tells. */
export type JournalOrigin = 'fresh' | 'existing' | 'replaced-damaged' | 'replaced-other-boot';

/** What activation adds to a pending lease. */
export type LeaseDetails = Pick<Lease, 'hostVeth' | 'podMac'>;

/**
 * Remembers what the agent decided, so that it can be killed between any two system calls. Each method is one
 * transaction: after a crash it happened as a whole or not at all. Order on ADD: putLease, act, activateLease. On DEL:
 * markReleasing, act, eraseLease.
 * @throws JournalError from every method that writes.
 */
export type Journal = {
  readonly origin: JournalOrigin;
  /** Where a damaged predecessor was moved to. */
  readonly movedTo?: string;
  /**
   * True from a file's making until `markAdopted`, crashes in between included: Pods may live which it does not know. Adopt
   * them from the kernel and the runtime before serving.
   */
  readonly needsAdoption: boolean;
  load(): JournalContent;
  /** Records an intent (pending), or a lease found in the kernel (active). Ends the cooldown of its addresses. Replaces a lease of the same key. @throws JournalError JOURNAL_ADDRESS_TAKEN */
  putLease(lease: Lease): void;
  /** @throws JournalError JOURNAL_NO_LEASE when the key has none. */
  activateLease(key: string, details: LeaseDetails): void;
  /** Returns false when the key has no lease. Idempotent. */
  markReleasing(key: string): boolean;
  /** Removes a lease and starts its addresses' cooldowns, in one. Returns false when the key has no lease. Works on a full disk. */
  eraseLease(key: string, cooldowns: readonly Cooldown[]): boolean;
  /** Forgets cooldowns that are over; many take several transactions. Works on a full disk. */
  eraseCooldowns(ips: readonly string[]): void;
  /** Records offers, before they are published. Idempotent. */
  putOffers(offers: readonly Offer[]): void;
  /** Forgets offers that were taken, or taken out; many take several transactions. Works on a full disk. */
  eraseOffers(ips: readonly string[]): void;
  /** @throws JournalError JOURNAL_ENI_CONFLICT when another ENI has its table or slot. */
  putEni(record: EniRecord): void;
  eraseEni(eniId: string): void;
  putSupply(supply: Supply): void;
  putRuleMode(mode: RuleMode): void;
  putLife(life: string): void;
  /** Records that whatever lived without a record is in it now. Idempotent. Works on a full disk. */
  markAdopted(): void;
  /** Checks that the file is still ours and whole, and writes it anew from memory when not. Each write does it too. */
  verify(): 'intact' | 'rebuilt';
  close(): void;
  [Symbol.dispose](): void;
};

/** Parts what is of whole ENIs from what is of single addresses, in this order. Pure. */
export function parted<T extends { readonly isWholeEni?: true }>(
  all: readonly T[],
): readonly [readonly T[], readonly T[]] {
  return [all.filter(({ isWholeEni }) => isWholeEni === true), all.filter(({ isWholeEni }) => isWholeEni !== true)];
}
