import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RuleMode } from '../../dataplane/network.ts';
import type { Cooldown, EniRecord, JournalContent, Offer, RecordedPod } from './journal-content.ts';
import {
  decodeCooldown,
  decodeEniRecord,
  decodeLease,
  decodeOffer,
  decodePodCidrs,
  decodePods,
  decodeSupply,
} from './journal-rows.ts';
import { type Lease, type LeaseKey, leaseKey } from './lease.ts';
import type { Supply } from './supply.ts';

/** The content of a journal by key, in memory. */
export type JournalMemory = {
  readonly leases: Map<LeaseKey, Lease>;
  readonly cooldowns: Map<string, Cooldown>;
  readonly enis: Map<string, EniRecord>;
  readonly offers: Map<string, Offer>;
  supply: Supply | undefined;
  ruleMode: RuleMode | undefined;
  life: string | undefined;
  pods: readonly RecordedPod[] | undefined;
  podCidrs: readonly string[] | undefined;
  /** Pods may run that it does not know. */
  needsAdoption: boolean;
};

/** Creates an empty content, for a new file, which knows nothing of running Pods. */
export function emptyMemory(): JournalMemory {
  return {
    leases: new Map(),
    cooldowns: new Map(),
    enis: new Map(),
    offers: new Map(),
    supply: undefined,
    ruleMode: undefined,
    life: undefined,
    pods: undefined,
    podCidrs: undefined,
    needsAdoption: true,
  };
}

/** Converts the content in memory into a `JournalContent`. */
export function contentOf(memory: JournalMemory): JournalContent {
  const { leases, cooldowns, enis, offers, supply, ruleMode, life, pods, podCidrs } = memory;
  return {
    leases: [...leases.values()],
    cooldowns: [...cooldowns.values()],
    enis: [...enis.values()],
    ...(offers.size === 0 ? {} : { offers: [...offers.values()] }),
    ...(supply === undefined ? {} : { supply }),
    ...(ruleMode === undefined ? {} : { ruleMode }),
    ...(life === undefined ? {} : { life }),
    ...(pods === undefined ? {} : { pods }),
    ...(podCidrs === undefined ? {} : { podCidrs }),
  };
}

/**
 * Reads a whole database.
 * @throws ConfigError, SyntaxError or Error when a row is malformed, or two tables disagree: the file is damaged.
 */
export function readTables(database: DatabaseSync): { readonly memory: JournalMemory; readonly bootId: string } {
  const column = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map((row) => String(Object.values(row)[0]));
  const meta = new Map(
    database
      .prepare('SELECT name, body FROM meta')
      .all()
      .map((row) => [String(row['name']), String(row['body'])]),
  );
  const supply = meta.get('supply');
  const pods = meta.get('pods');
  const podCidrs = meta.get('podCidrs');
  const ruleMode = meta.get('ruleMode');
  if (ruleMode !== undefined && ruleMode !== 'compact' && ruleMode !== 'per-pod')
    throw new Error(`rule mode ${ruleMode}`);
  const leases = column('SELECT body FROM lease ORDER BY key').map(decodeLease);
  const memory: JournalMemory = {
    leases: new Map(leases.map((lease) => [leaseKey(lease), lease])),
    cooldowns: new Map(
      column('SELECT body FROM cooldown')
        .map(decodeCooldown)
        .map((entry) => [entry.ip, entry]),
    ),
    enis: new Map(
      column('SELECT body FROM eni')
        .map(decodeEniRecord)
        .map((record) => [record.eniId, record]),
    ),
    offers: new Map(
      (hasTable(database, 'offer') ? column('SELECT body FROM offer ORDER BY ip') : [])
        .map(decodeOffer)
        .map((entry) => [entry.ip, entry]),
    ),
    supply: supply === undefined ? undefined : decodeSupply(supply),
    ruleMode,
    life: meta.get('life'),
    pods: pods === undefined ? undefined : decodePods(pods),
    podCidrs: podCidrs === undefined ? undefined : decodePodCidrs(podCidrs),
    needsAdoption: meta.has('adoption'),
  };
  const owned = column("SELECT ip || ' ' || lease_key FROM lease_address ORDER BY 1");
  const expected = leases.flatMap((lease) => lease.addresses.map(({ ip }) => `${ip} ${leaseKey(lease)}`));
  if (owned.join() !== expected.sort().join()) throw new Error('leases and their addresses disagree');
  return { memory, bootId: meta.get('bootId') ?? '' };
}

/** Journals of schema version 1 have no offers. */
function hasTable(database: DatabaseSync, name: string): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
}

/** The prepared writes of one connection. None of them begins or ends a transaction. */
export class TableWriter {
  readonly #statements: ReturnType<typeof prepareAll>;

  constructor(database: DatabaseSync) {
    this.#statements = prepareAll(database);
  }

  /** Writes a lease and makes it the owner of its addresses. */
  insertLease(lease: Lease): void {
    const key = leaseKey(lease);
    this.#statements.putLease.run(key, JSON.stringify(lease));
    for (const { ip } of lease.addresses) {
      this.#statements.putAddress.run(ip, key);
      this.#statements.deleteCooldown.run(ip);
    }
  }

  /** Writes a lease whose addresses are the same as before. */
  updateLease(lease: Lease): void {
    this.#statements.putLease.run(leaseKey(lease), JSON.stringify(lease));
  }

  deleteLease(lease: Lease): void {
    for (const { ip } of lease.addresses) this.#statements.deleteAddress.run(ip);
    this.#statements.deleteLease.run(leaseKey(lease));
  }

  putCooldown(cooldown: Cooldown): void {
    this.#statements.putCooldown.run(cooldown.ip, JSON.stringify(cooldown));
  }

  deleteCooldown(ip: string): void {
    this.#statements.deleteCooldown.run(ip);
  }

  putOffer(offer: Offer): void {
    this.#statements.putOffer.run(offer.ip, JSON.stringify(offer));
  }

  deleteOffer(ip: string): void {
    this.#statements.deleteOffer.run(ip);
  }

  putEni(record: EniRecord): void {
    this.#statements.putEni.run(record.eniId, record.table, record.slot, JSON.stringify(record));
  }

  deleteEni(eniId: string): void {
    this.#statements.deleteEni.run(eniId);
  }

  putMeta(name: 'supply' | 'ruleMode' | 'life' | 'pods' | 'podCidrs', body: string): void {
    this.#statements.putMeta.run(name, body);
  }

  /** Removes the mark of a new file. */
  markAdopted(): void {
    this.#statements.deleteMeta.run('adoption');
  }

  /** Writes the whole content into a new file. */
  putAll(memory: JournalMemory): void {
    for (const lease of memory.leases.values()) this.insertLease(lease);
    for (const cooldown of memory.cooldowns.values()) this.putCooldown(cooldown);
    for (const record of memory.enis.values()) this.putEni(record);
    for (const offer of memory.offers.values()) this.putOffer(offer);
    if (memory.supply !== undefined) this.putMeta('supply', JSON.stringify(memory.supply));
    if (memory.ruleMode !== undefined) this.putMeta('ruleMode', memory.ruleMode);
    if (memory.life !== undefined) this.putMeta('life', memory.life);
    if (memory.pods !== undefined) this.putMeta('pods', JSON.stringify(memory.pods));
    if (memory.podCidrs !== undefined) this.putMeta('podCidrs', JSON.stringify(memory.podCidrs));
    if (!memory.needsAdoption) this.markAdopted();
  }

  /** Counts the pages that the next writes may use before the file grows. */
  freePages(): number {
    return Number(this.#statements.freePages.get()?.['freelist_count']);
  }
}

function prepareAll(database: DatabaseSync): {
  readonly [K in keyof typeof STATEMENTS]: StatementSync;
} {
  const prepare = (name: keyof typeof STATEMENTS) => database.prepare(STATEMENTS[name]);
  return {
    putLease: prepare('putLease'),
    deleteLease: prepare('deleteLease'),
    putAddress: prepare('putAddress'),
    deleteAddress: prepare('deleteAddress'),
    putCooldown: prepare('putCooldown'),
    deleteCooldown: prepare('deleteCooldown'),
    putOffer: prepare('putOffer'),
    deleteOffer: prepare('deleteOffer'),
    putEni: prepare('putEni'),
    deleteEni: prepare('deleteEni'),
    putMeta: prepare('putMeta'),
    deleteMeta: prepare('deleteMeta'),
    freePages: prepare('freePages'),
  };
}

const upsert = (table: string, key: string, ...columns: readonly string[]) =>
  `INSERT INTO ${table} (${[key, ...columns].join(', ')}) VALUES (${[key, ...columns].map(() => '?').join(', ')})
   ON CONFLICT (${key}) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`;

const STATEMENTS = {
  putLease: upsert('lease', 'key', 'body'),
  deleteLease: 'DELETE FROM lease WHERE key = ?',
  // Not an upsert: an address that another lease has must fail.
  putAddress: 'INSERT INTO lease_address (ip, lease_key) VALUES (?, ?)',
  deleteAddress: 'DELETE FROM lease_address WHERE ip = ?',
  putCooldown: upsert('cooldown', 'ip', 'body'),
  deleteCooldown: 'DELETE FROM cooldown WHERE ip = ?',
  putOffer: upsert('offer', 'ip', 'body'),
  deleteOffer: 'DELETE FROM offer WHERE ip = ?',
  putEni: upsert('eni', 'eni_id', 'table_id', 'slot', 'body'),
  deleteEni: 'DELETE FROM eni WHERE eni_id = ?',
  putMeta: upsert('meta', 'name', 'body'),
  deleteMeta: 'DELETE FROM meta WHERE name = ?',
  freePages: 'PRAGMA freelist_count',
} as const;
