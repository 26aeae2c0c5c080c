import type {
  Cooldown,
  EniRecord,
  Journal,
  JournalContent,
  JournalOrigin,
  LeaseDetails,
  Offer,
  RecordedPod,
} from '../../agent/journal/journal-content.ts';
import { JournalError, type JournalErrorCode } from '../../agent/journal/journal-error.ts';
import { contentOf, emptyMemory, type JournalMemory } from '../../agent/journal/journal-tables.ts';
import { type Lease, type LeaseKey, leaseKey } from '../../agent/journal/lease.ts';
import type { Clock } from '../../runtime/clock.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';

const PATH = 'memory';

/** The place of a node's journal. It outlives agents, and no reboot: a machine that boots gets another one. */
export class JournalPlace {
  /** Whether a write that may be refused is refused: no space is left. What ends something succeeds. */
  isFull = false;
  #memory: JournalMemory | undefined;
  #bootId = '';
  #isDamaged = false;
  #open: MemoryJournal | undefined;

  /** Opens it as an agent does. @throws JournalError JOURNAL_LOCKED */
  open(bootId: string, clock: Pick<Clock, 'bootMs'>): Journal {
    if (this.#open !== undefined) throw new JournalError('JOURNAL_LOCKED', PATH, 'another agent has it open');
    const origin = this.#originAt(bootId);
    const memory = origin === 'existing' && this.#memory !== undefined ? readAgain(this.#memory) : emptyMemory();
    this.#memory = memory;
    this.#bootId = bootId;
    this.#isDamaged = false;
    this.#open = new MemoryJournal(this, { origin, memory, clock });
    return this.#open;
  }

  /** What is in it, for who judges it; undefined while there is none. */
  get content(): Pick<JournalMemory, 'leases' | 'enis' | 'offers' | 'ruleMode' | 'needsAdoption'> | undefined {
    return this.#memory;
  }

  /** Ends whoever has it open, as a kill does: nothing is written any more. */
  release(): void {
    this.#open = undefined;
  }

  /** Deletes the file. An agent that has it open writes it again from its memory. */
  lose(): void {
    this.#memory = undefined;
  }

  /** Damages the file: the next agent cannot read it. One that has it open writes it again. */
  damage(): void {
    this.#isDamaged = true;
  }

  /** Reports whether the file was whole, and is after this. @throws JournalError JOURNAL_BROKEN for who has it not open */
  keep(journal: MemoryJournal, memory: JournalMemory): 'intact' | 'rebuilt' {
    if (this.#open !== journal) throw new JournalError('JOURNAL_BROKEN', PATH, 'it is closed');
    if (this.#memory === memory && !this.#isDamaged) return 'intact';
    this.#memory = memory;
    this.#isDamaged = false;
    return 'rebuilt';
  }

  /** Ends it for who has it open. */
  close(journal: MemoryJournal): void {
    if (this.#open === journal) this.#open = undefined;
  }

  #originAt(bootId: string): JournalOrigin {
    if (this.#memory === undefined) return 'fresh';
    if (this.#isDamaged) return 'replaced-damaged';
    return this.#bootId === bootId ? 'existing' : 'replaced-other-boot';
  }
}

/** The memory of an agent that reads the file which another one wrote. */
function readAgain(memory: JournalMemory): JournalMemory {
  const { leases, cooldowns, enis, offers, ...rest } = memory;
  const again = <T>(value: T): T => (value === undefined ? value : JSON.parse(JSON.stringify(value)));
  const inOrder = <K extends string, V>(of: Map<K, V>): Map<K, V> =>
    new Map([...of].sort(([one], [other]) => compareTexts(one, other)).map(([key, value]) => [key, again(value)]));
  return {
    ...{ ...rest, supply: again(rest.supply), pods: again(rest.pods), podCidrs: again(rest.podCidrs) },
    ...{ leases: inOrder(leases), cooldowns: inOrder(cooldowns), enis: inOrder(enis), offers: inOrder(offers) },
  };
}

/** A journal without a file. Each method is one transaction: it happens as a whole, or it throws and nothing happens. */
class MemoryJournal implements Journal {
  readonly origin: JournalOrigin;
  readonly #place: JournalPlace;
  readonly #memory: JournalMemory;
  readonly #clock: Pick<Clock, 'bootMs'>;

  constructor(
    place: JournalPlace,
    { origin, memory, clock }: { origin: JournalOrigin; memory: JournalMemory; clock: Pick<Clock, 'bootMs'> },
  ) {
    this.origin = origin;
    this.#place = place;
    this.#memory = memory;
    this.#clock = clock;
  }

  get needsAdoption(): boolean {
    return this.#memory.needsAdoption;
  }

  load(): JournalContent {
    const nowMs = this.#clock.bootMs();
    const { cooldowns, ...rest } = contentOf(this.#memory);
    // A deadline later than a whole cooldown from now was set by another clock.
    const bounded = cooldowns.map((entry) => ({
      ...entry,
      coolUntilMs: Math.min(entry.coolUntilMs, nowMs + entry.cooldownMs),
    }));
    return { ...rest, cooldowns: bounded };
  }

  putLease(lease: Lease): void {
    const key = leaseKey(lease);
    const ips = new Set(lease.addresses.map(({ ip }) => ip));
    this.#mayGrow();
    const owner = [...this.#memory.leases].find(
      ([other, { addresses }]) => other !== key && addresses.some(({ ip }) => ips.has(ip)),
    )?.[1];
    if (owner !== undefined) {
      const whose = `belongs to sandbox ${owner.containerId} (${owner.ifName})`;
      throw refusal('JOURNAL_ADDRESS_TAKEN', `${[...ips].join(' or ')} ${whose}`);
    }
    this.#memory.leases.set(key, lease);
    for (const ip of ips) this.#memory.cooldowns.delete(ip);
  }

  activateLease(key: LeaseKey, details: LeaseDetails): void {
    const pending = this.#memory.leases.get(key);
    if (pending === undefined) throw refusal('JOURNAL_NO_LEASE', `no lease ${key} to activate`);
    this.#write();
    this.#memory.leases.set(key, { ...pending, ...details, state: 'active' });
  }

  markReleasing(key: LeaseKey): boolean {
    const lease = this.#memory.leases.get(key);
    if (lease === undefined) return false;
    this.#write();
    this.#memory.leases.set(key, { ...lease, state: 'releasing' });
    return true;
  }

  eraseLease(key: LeaseKey, cooldowns: readonly Cooldown[]): boolean {
    if (!this.#memory.leases.has(key)) return false;
    this.#write();
    this.#memory.leases.delete(key);
    for (const cooldown of cooldowns) this.#memory.cooldowns.set(cooldown.ip, cooldown);
    return true;
  }

  eraseCooldowns(ips: readonly string[]): void {
    this.#write();
    for (const ip of ips) this.#memory.cooldowns.delete(ip);
  }

  putOffers(offers: readonly Offer[]): void {
    this.#mayGrow();
    for (const offer of offers) this.#memory.offers.set(offer.ip, offer);
  }

  eraseOffers(ips: readonly string[]): void {
    this.#write();
    for (const ip of ips) this.#memory.offers.delete(ip);
  }

  putEni(record: EniRecord): void {
    const { eniId, table, slot } = record;
    this.#mayGrow();
    const rivals = [...this.#memory.enis.values()].filter(
      (other) => other.eniId !== eniId && (other.table === table || other.slot === slot),
    );
    if (rivals.length > 0) {
      const owners = rivals.map((other) => `${other.eniId} has table ${other.table}, slot ${other.slot}`).join('; ');
      throw refusal('JOURNAL_ENI_CONFLICT', `${eniId} cannot have table ${table}, slot ${slot}: ${owners}`);
    }
    this.#memory.enis.set(eniId, record);
  }

  eraseEni(eniId: string): void {
    this.#write();
    this.#memory.enis.delete(eniId);
  }

  putSupply(supply: NonNullable<JournalContent['supply']>): void {
    this.#mayGrow();
    this.#memory.supply = supply;
  }

  putRuleMode(mode: NonNullable<JournalContent['ruleMode']>): void {
    this.#mayGrow();
    this.#memory.ruleMode = mode;
  }

  putLife(life: string): void {
    this.#mayGrow();
    this.#memory.life = life;
  }

  putPods(pods: readonly RecordedPod[]): void {
    this.#mayGrow();
    this.#memory.pods = pods;
  }

  putPodCidrs(cidrs: readonly string[]): void {
    this.#mayGrow();
    this.#memory.podCidrs = cidrs;
  }

  markAdopted(): void {
    this.#write();
    this.#memory.needsAdoption = false;
  }

  verify(): 'intact' | 'rebuilt' {
    return this.#place.keep(this, this.#memory);
  }

  close(): void {
    this.#place.close(this);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Begins a transaction. @throws JournalError JOURNAL_BROKEN */
  #write(): void {
    this.verify();
  }

  /** Begins one that needs space. @throws JournalError JOURNAL_FULL, JOURNAL_BROKEN */
  #mayGrow(): void {
    this.#write();
    if (this.#place.isFull) throw refusal('JOURNAL_FULL', 'no space left in its file system; free some');
  }
}

function refusal(code: JournalErrorCode, message: string): JournalError {
  return new JournalError(code, PATH, message);
}
