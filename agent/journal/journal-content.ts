import type { Family } from '../../dataplane/ip-prefix.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import type { Lease } from './lease.ts';
import type { Supply } from './supply.ts';

/** A cooldown: the address may not be leased yet. */
export type Cooldown = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  readonly assignmentId: string;
  /** When its last owner released it. Times are milliseconds since boot, which the journal does not outlive. */
  readonly freedAtMs: number;
  readonly coolUntilMs: number;
  /** Full length of the cooldown: limits what remains, whatever clock wrote the deadline. */
  readonly cooldownMs: number;
  /** Present when a whole ENI cools; the address is then its first own one. */
  readonly isWholeEni?: true;
};

/**
 * An address that the agent offers for release. It is recorded and withdrawn from use before it is published. It stays
 * out of use until a guarded write of the agent removed the offer, or the supply shows that ipamd took the address.
 */
export type Offer = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  /** Only this assignment is offered, and no later one of the same address. */
  readonly assignmentId: string;
  /** Present when a whole ENI is offered; the address is then its first own one. */
  readonly isWholeEni?: true;
};

/**
 * Table and slot of an ENI, decided when it was first set up. They stay for the ENI's life, also when its ifindex
 * changes.
 */
export type EniRecord = {
  readonly eniId: string;
  readonly mac: string;
  /** Routing table: 4000 + the first ifindex. */
  readonly table: number;
  /** 1 to 255; the firewall mark is `slot << shift(mask)`. */
  readonly slot: number;
};

/**
 * How a Pod of the node is connected, as the cluster said last. An ADD goes by it while no API server answers; a Pod
 * without an address yet is recorded too.
 */
export type RecordedPod = {
  readonly namespace: string;
  readonly name: string;
  /** As kubelet and the runtime know it: the uid of a static Pod differs from that of its mirror Pod in the API. */
  readonly uid: string;
  /** It gets its static IP, and no other address. */
  readonly isStatic?: true;
  /** It gets a whole ENI: any of the pool, or one with its own claim. Absent: it shares an ENI. */
  readonly direct?: 'pool' | 'own';
  /** The network that its annotation names, a shared ENI or the bridge; absent: `direct`, or as the node's default. */
  readonly network?: 'route-eni' | 'bridge';
  /** Why no network can be chosen by its annotation; its ADD fails with this text. */
  readonly networkFault?: string;
  /** The name in its annotation that is none of our networks; there is a fault too, for where no other plugin is called. */
  readonly otherNetwork?: string;
  /** It requests security groups. An ENI that is shared, or that was not prepared for it, does not have them. */
  readonly requestsGroups?: true;
};

/** The whole content of a journal. */
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
  /**
   * Name of this journal. What an agent wrote into the cluster under another name belongs to a journal that was lost.
   */
  readonly life?: string;
  /** Absent before the first list of the node's Pods. */
  readonly pods?: readonly RecordedPod[];
  /** Blocks of the node's GlobalRoute Pods as its Node object had them last; absent before the first. */
  readonly podCidrs?: readonly string[];
};

/** Where the content of a journal comes from. `needsAdoption` tells whether Pods may run that it does not know. */
export type JournalOrigin = 'fresh' | 'existing' | 'replaced-damaged' | 'replaced-other-boot';

/** What activation adds to a pending lease. */
export type LeaseDetails = Pick<Lease, 'hostVeth' | 'podMac'>;

/**
 * Persists what the agent decided, so that the agent can be killed between any two system calls. Each method is one
 * transaction: after a crash it happened as a whole or not at all. Order on ADD: putLease, write to the kernel,
 * activateLease. On DEL: markReleasing, write to the kernel, eraseLease.
 * @throws JournalError from every method that writes.
 */
export type Journal = {
  readonly origin: JournalOrigin;
  /** Path to which a damaged predecessor was moved. */
  readonly movedTo?: string;
  /**
   * True from the creation of the file until `markAdopted`, across crashes: Pods may run that it does not know. Adopt
   * them from the kernel and the runtime before serving.
   */
  readonly needsAdoption: boolean;
  load(): JournalContent;
  /**
   * Records an intent (pending), or a lease found in the kernel (active). Ends the cooldown of its addresses. Replaces
   * a lease of the same key.
   * @throws JournalError JOURNAL_ADDRESS_TAKEN
   */
  putLease(lease: Lease): void;
  /** @throws JournalError JOURNAL_NO_LEASE when the key has none. */
  activateLease(key: string, details: LeaseDetails): void;
  /** Returns false when the key has no lease. Idempotent. */
  markReleasing(key: string): boolean;
  /**
   * Removes a lease and starts its addresses' cooldowns, in one transaction. Returns false when the key has no lease.
   * Works on a full disk.
   */
  eraseLease(key: string, cooldowns: readonly Cooldown[]): boolean;
  /** Erases cooldowns that have ended; many take several transactions. Works on a full disk. */
  eraseCooldowns(ips: readonly string[]): void;
  /** Records offers, before they are published. Idempotent. */
  putOffers(offers: readonly Offer[]): void;
  /**
   * Erases offers that ipamd acted on, or that were taken back; many take several transactions. Works on a full disk.
   */
  eraseOffers(ips: readonly string[]): void;
  /** @throws JournalError JOURNAL_ENI_CONFLICT when another ENI has its table or slot. */
  putEni(record: EniRecord): void;
  eraseEni(eniId: string): void;
  putSupply(supply: Supply): void;
  putRuleMode(mode: RuleMode): void;
  putLife(life: string): void;
  /** Replaces the Pods of the node. */
  putPods(pods: readonly RecordedPod[]): void;
  putPodCidrs(cidrs: readonly string[]): void;
  /** Records that the journal now has all Pods that ran without a record. Idempotent. Works on a full disk. */
  markAdopted(): void;
  /** Checks that the file is whole and still ours, and writes it again from memory when not. Each write does it too. */
  verify(): 'intact' | 'rebuilt';
  close(): void;
  [Symbol.dispose](): void;
};

/** Splits entries of whole ENIs from entries of single addresses; returns them in this order. */
export function splitWholeEnis<T extends { readonly isWholeEni?: true }>(
  all: readonly T[],
): readonly [readonly T[], readonly T[]] {
  return [all.filter(({ isWholeEni }) => isWholeEni === true), all.filter(({ isWholeEni }) => isWholeEni !== true)];
}
