import { isDeepStrictEqual } from 'node:util';
import type { RuleMode } from '../../dataplane/network.ts';
import type { Clock } from '../../runtime/clock.ts';
import { invariant } from '../../runtime/invariant.ts';
import { type Logger, silentLogger } from '../../runtime/log.ts';
import { readBootId } from './boot-id.ts';
import {
  asJournalError,
  type Connection,
  closeQuietly,
  connectNew,
  lockedBy,
  type OpenResult,
  openExisting,
  transact,
} from './journal-connection.ts';
import type {
  Cooldown,
  EniRecord,
  Journal,
  JournalContent,
  JournalOrigin,
  LeaseDetails,
  Offer,
  RecordedPod,
} from './journal-content.ts';
import { JournalError } from './journal-error.ts';
import {
  growDatabase,
  identify,
  isOccupied,
  moveAside,
  openDatabase,
  PAGE_BYTES,
  rollbackPath,
} from './journal-file.ts';
import { contentOf, emptyMemory, type JournalMemory, type TableWriter } from './journal-tables.ts';
import { type Lease, leaseKey } from './lease.ts';
import { isAddressTaken, isDamage, isEniConflict, isFull, isLocked } from './sqlite-error.ts';
import type { Supply } from './supply.ts';

/** Options of a journal. */
type JournalOptions = {
  /** Clock of the deadlines of cooldowns. */
  readonly clock: Pick<Clock, 'bootMs'>;
  readonly log?: Logger;
  /** Id of this boot; read from the kernel when absent. */
  readonly bootId?: string;
};

/**
 * Number of free pages that a write which may be refused (a new lease) leaves for those that must succeed (the end of a
 * lease). Erasing every lease of a full node writes a dozen pages of cooldowns.
 */
const RESERVE_PAGES = 32;
const GROWTH_BYTES = 2 * RESERVE_PAGES * PAGE_BYTES;
const ERASED_AT_ONCE = 24;

/**
 * Opens the journal at `path`, or creates one. A damaged one is moved aside (`<path>.damaged-<n>`, the last three
 * stay). One of another boot is removed, because its sandboxes no longer exist. Check `needsAdoption` before serving.
 * @throws JournalError JOURNAL_LOCKED, JOURNAL_FULL, JOURNAL_BROKEN
 */
export function openJournal(path: string, options: JournalOptions): Journal {
  const bootId = options.bootId ?? readBootId();
  const log = options.log ?? silentLogger;
  const found = openExisting(path, bootId, log);
  const connection = found.connection ?? connectNew(path, bootId, emptyMemory());
  const memory = found.memory ?? emptyMemory();
  return new SqliteJournal({ path, bootId, log, clock: options.clock, ...found, connection, memory });
}

class SqliteJournal implements Journal {
  readonly origin: JournalOrigin;
  readonly movedTo?: string;
  readonly #path: string;
  readonly #bootId: string;
  readonly #log: Logger;
  readonly #clock: Pick<Clock, 'bootMs'>;
  /** Copy of the file's content, from which a deleted, truncated or broken file can be written again. */
  readonly #memory: JournalMemory;
  #connection: Connection | undefined;
  #isClosed = false;

  constructor(
    init: OpenResult & Required<JournalOptions> & { path: string; connection: Connection; memory: JournalMemory },
  ) {
    this.origin = init.origin;
    if (init.movedTo !== undefined) this.movedTo = init.movedTo;
    this.#path = init.path;
    this.#bootId = init.bootId;
    this.#log = init.log;
    this.#clock = init.clock;
    this.#memory = init.memory;
    this.#connection = init.connection;
  }

  get needsAdoption(): boolean {
    return this.#memory.needsAdoption;
  }

  load(): JournalContent {
    const nowMs = this.#clock.bootMs();
    const content = contentOf(this.#memory);
    // A deadline later than a whole cooldown from now was set by another clock.
    const cooldowns = content.cooldowns.map((entry) => ({
      ...entry,
      coolUntilMs: Math.min(entry.coolUntilMs, nowMs + entry.cooldownMs),
    }));
    return { ...content, cooldowns };
  }

  putLease(lease: Lease): void {
    const key = leaseKey(lease);
    const before = this.#memory.leases.get(key);
    try {
      this.#write('may-grow', (writer) => {
        if (before !== undefined) writer.deleteLease(before);
        writer.insertLease(lease);
      });
    } catch (error) {
      throw isAddressTaken(error) ? this.#addressTaken(lease, error) : error;
    }
    this.#memory.leases.set(key, lease);
    for (const { ip } of lease.addresses) this.#memory.cooldowns.delete(ip);
  }

  activateLease(key: string, details: LeaseDetails): void {
    const pending = this.#memory.leases.get(key);
    if (pending === undefined) throw new JournalError('JOURNAL_NO_LEASE', this.#path, `no lease ${key} to activate`);
    this.#update({ ...pending, ...details, state: 'active' });
  }

  markReleasing(key: string): boolean {
    const lease = this.#memory.leases.get(key);
    if (lease === undefined) return false;
    if (lease.state !== 'releasing') this.#update({ ...lease, state: 'releasing' });
    return true;
  }

  eraseLease(key: string, cooldowns: readonly Cooldown[]): boolean {
    const lease = this.#memory.leases.get(key);
    if (lease === undefined) return false;
    this.#write('in-reserve', (writer) => {
      writer.deleteLease(lease);
      for (const cooldown of cooldowns) writer.putCooldown(cooldown);
    });
    this.#memory.leases.delete(key);
    for (const cooldown of cooldowns) this.#memory.cooldowns.set(cooldown.ip, cooldown);
    return true;
  }

  eraseCooldowns(ips: readonly string[]): void {
    this.#eraseInBatches(ips, this.#memory.cooldowns, (writer, ip) => writer.deleteCooldown(ip));
  }

  putOffers(offers: readonly Offer[]): void {
    const news = offers.filter((offer) => !isDeepStrictEqual(offer, this.#memory.offers.get(offer.ip)));
    if (news.length === 0) return;
    this.#write('may-grow', (writer) => {
      for (const offer of news) writer.putOffer(offer);
    });
    for (const offer of offers) this.#memory.offers.set(offer.ip, offer);
  }

  eraseOffers(ips: readonly string[]): void {
    this.#eraseInBatches(ips, this.#memory.offers, (writer, ip) => writer.deleteOffer(ip));
  }

  putEni(record: EniRecord): void {
    if (isDeepStrictEqual(record, this.#memory.enis.get(record.eniId))) return;
    try {
      this.#write('may-grow', (writer) => writer.putEni(record));
    } catch (error) {
      throw isEniConflict(error) ? this.#eniConflict(record, error) : error;
    }
    this.#memory.enis.set(record.eniId, record);
  }

  eraseEni(eniId: string): void {
    if (!this.#memory.enis.has(eniId)) return;
    this.#write('in-reserve', (writer) => writer.deleteEni(eniId));
    this.#memory.enis.delete(eniId);
  }

  putSupply(supply: Supply): void {
    this.#putMeta('supply', supply, this.#memory.supply);
    this.#memory.supply = supply;
  }

  putRuleMode(mode: RuleMode): void {
    if (mode === this.#memory.ruleMode) return;
    this.#write('may-grow', (writer) => writer.putMeta('ruleMode', mode));
    this.#memory.ruleMode = mode;
  }

  putLife(life: string): void {
    if (life === this.#memory.life) return;
    this.#write('may-grow', (writer) => writer.putMeta('life', life));
    this.#memory.life = life;
  }

  putPods(pods: readonly RecordedPod[]): void {
    this.#putMeta('pods', pods, this.#memory.pods);
    this.#memory.pods = pods;
  }

  putPodCidrs(cidrs: readonly string[]): void {
    this.#putMeta('podCidrs', cidrs, this.#memory.podCidrs);
    this.#memory.podCidrs = cidrs;
  }

  markAdopted(): void {
    if (!this.#memory.needsAdoption) return;
    this.#write('in-reserve', (writer) => writer.markAdopted());
    this.#memory.needsAdoption = false;
  }

  verify(): 'intact' | 'rebuilt' {
    if (this.#isClosed) throw new JournalError('JOURNAL_BROKEN', this.#path, 'it is closed');
    const fault = this.#findFault();
    if (fault === undefined) return 'intact';
    this.#rebuild(fault);
    return 'rebuilt';
  }

  close(): void {
    this.#isClosed = true;
    closeQuietly(this.#connection?.database);
    this.#connection = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Writes a value unless it is on record already. */
  #putMeta(name: 'supply' | 'pods' | 'podCidrs', value: object, recorded: object | undefined): void {
    if (isDeepStrictEqual(value, recorded)) return;
    this.#write('may-grow', (writer) => writer.putMeta(name, JSON.stringify(value)));
  }

  #update(lease: Lease): void {
    this.#write('in-reserve', (writer) => writer.updateLease(lease));
    this.#memory.leases.set(leaseKey(lease), lease);
  }

  /**
   * Erases in order and a few at a time: the pages that one transaction saves must fit the rollback journal on a full
   * disk.
   */
  #eraseInBatches(
    ips: readonly string[],
    from: Map<string, unknown>,
    erase: (writer: TableWriter, ip: string) => void,
  ): void {
    const known = ips.filter((ip) => from.has(ip)).sort();
    for (let start = 0; start < known.length; start += ERASED_AT_ONCE) {
      const part = known.slice(start, start + ERASED_AT_ONCE);
      this.#write('in-reserve', (writer) => {
        for (const ip of part) erase(writer, ip);
      });
      for (const ip of part) from.delete(ip);
    }
  }

  /** Runs one transaction. The caller changes the memory after it, so that a failure leaves both as they were. */
  #write(space: 'may-grow' | 'in-reserve', change: (writer: TableWriter) => void): void {
    this.verify();
    try {
      this.#transact(space, change);
    } catch (error) {
      if (!isDamage(error)) throw this.#explain(error);
      this.#rebuild(String(error));
      try {
        this.#transact(space, change);
      } catch (retryError) {
        throw this.#explain(retryError);
      }
    }
  }

  #transact(space: 'may-grow' | 'in-reserve', change: (writer: TableWriter) => void): void {
    const connection = this.#connection;
    invariant(connection !== undefined, 'a write follows verify, which connects');
    const { database, writer } = connection;
    if (space === 'may-grow' && writer.freePages() < RESERVE_PAGES) {
      growDatabase(database, GROWTH_BYTES);
      connection.identity = identify(this.#path);
    }
    transact(database, () => change(writer));
  }

  #findFault(): string | undefined {
    const identity = identify(this.#path);
    const ours = this.#connection?.identity;
    if (ours === undefined) return 'it could not be opened';
    if (identity === undefined) {
      return isOccupied(this.#path) ? 'something else than a file is in its place' : 'the file was deleted';
    }
    if (identity.ino !== ours.ino || identity.dev !== ours.dev) return 'another file is in its place';
    if (identity.bytes < ours.bytes) return `the file was cut from ${ours.bytes} to ${identity.bytes} bytes`;
    // Without it a crash during a transaction could not be rolled back.
    const rollback = identify(rollbackPath(this.#path));
    if (rollback?.ino !== this.#connection?.rollback?.ino) return 'its rollback journal was deleted';
    return undefined;
  }

  #rebuild(reason: string): void {
    closeQuietly(this.#connection?.database);
    this.#connection = undefined;
    const movedTo = isOccupied(this.#path) ? this.#moveForeignAside() : undefined;
    this.#connection = connectNew(this.#path, this.#bootId, this.#memory);
    this.#log.error('journal written again from memory', { path: this.#path, reason, movedTo });
  }

  #moveForeignAside(): string {
    try {
      openDatabase(this.#path).close();
    } catch (error) {
      if (isLocked(error)) throw lockedBy(this.#path, error);
    }
    return asJournalError(this.#path, () => moveAside(this.#path));
  }

  #addressTaken(lease: Lease, cause: unknown): JournalError {
    const ips = new Set(lease.addresses.map((address) => address.ip));
    const owner = [...this.#memory.leases.values()].find((other) => other.addresses.some(({ ip }) => ips.has(ip)));
    const message = `${[...ips].join(' or ')} belongs to sandbox ${owner?.containerId} (${owner?.ifName})`;
    return new JournalError('JOURNAL_ADDRESS_TAKEN', this.#path, message, { cause });
  }

  #eniConflict({ eniId, table, slot }: EniRecord, cause: unknown): JournalError {
    const rivals = [...this.#memory.enis.values()].filter((other) => other.table === table || other.slot === slot);
    const owners = rivals.map((other) => `${other.eniId} has table ${other.table}, slot ${other.slot}`).join('; ');
    const message = `${eniId} cannot have table ${table}, slot ${slot}: ${owners}`;
    return new JournalError('JOURNAL_ENI_CONFLICT', this.#path, message, { cause });
  }

  #explain(error: unknown): unknown {
    const cause = { cause: error };
    if (isFull(error)) {
      return new JournalError('JOURNAL_FULL', this.#path, 'no space left in its file system; free some', cause);
    }
    // The caller knows which address or ENI it was about.
    if (error instanceof JournalError || isAddressTaken(error) || isEniConflict(error)) return error;
    return new JournalError('JOURNAL_BROKEN', this.#path, String(error), cause);
  }
}
