import { DatabaseSync } from 'node:sqlite';
import { openJournal } from '../../../agent/journal/journal.ts';
import type { Cooldown, EniRecord, Offer, RecordedPod } from '../../../agent/journal/journal-content.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import type { RuleMode } from '../../../dataplane/network.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** A journal as text: what SQLite says of the file, its tables, and their rows with the JSON in them. */
export type JournalDump = {
  readonly applicationId: number;
  readonly userVersion: number;
  readonly pageSize: number;
  readonly tables: Readonly<Record<string, string>>;
  /** Rows of each table, in the order of its key; JSON texts are JSON here. */
  readonly rows: Readonly<Record<string, readonly JsonObject[]>>;
};

/** Its rows are none: pages that are kept free. */
const RESERVE = 'reserve';

/** Takes a recorded value for what it is. @throws Error when it is no journal */
export function asJournal(value: JsonObject): JournalDump {
  const { applicationId, userVersion, pageSize, tables, rows } = value;
  if (!isObject(tables) || !isObject(rows)) throw new Error('no recorded journal');
  return {
    ...{ applicationId: Number(applicationId), userVersion: Number(userVersion), pageSize: Number(pageSize) },
    tables: Object.fromEntries(Object.entries(tables).map(([name, sql]) => [name, String(sql)])),
    rows: Object.fromEntries(
      Object.entries(rows).map(([name, list]) => [name, Array.isArray(list) ? list.filter(isObject) : []]),
    ),
  };
}

/** Reads a journal that nobody has open. */
export function dumpJournal(path: string): JournalDump {
  using database = new DatabaseSync(path, { readOnly: true });
  const value = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const schema = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const tables = schema.map(({ name, sql }) => [String(name), String(sql).replaceAll(/\s+/g, ' ')] as const);
  const rows = tables
    .filter(([name]) => name !== RESERVE)
    .map(([name]) => [name, database.prepare(`SELECT * FROM ${name} ORDER BY 1`).all().map(parsed)] as const);
  return {
    applicationId: value('application_id'),
    userVersion: value('user_version'),
    pageSize: value('page_size'),
    tables: Object.fromEntries(tables),
    rows: Object.fromEntries(rows),
  };
}

/** Makes the file of a recorded journal. */
export function makeJournal(path: string, dump: JournalDump): void {
  using database = new DatabaseSync(path);
  database.exec(`
    PRAGMA page_size = ${dump.pageSize}; PRAGMA application_id = ${dump.applicationId};
    PRAGMA user_version = ${dump.userVersion}; ${Object.values(dump.tables).join(';')};
  `);
  for (const [table, rows] of Object.entries(dump.rows)) {
    for (const row of rows) {
      const columns = Object.keys(row);
      const places = columns.map(() => '?').join(', ');
      const values = Object.values(row).map((item) =>
        isObject(item) ? JSON.stringify(item) : (item as string | number),
      );
      database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`).run(...values);
    }
  }
}

/** Has the product write a journal of the same content again, and reads what it wrote. */
export function rewriteJournal(dump: JournalDump): JournalDump {
  const dir = createTempDir('frozen');
  try {
    const path = dir.join('journal.db');
    const meta = metaOf(dump);
    const clock = clockOf(dump);
    using journal = openJournal(path, { clock, bootId: String(meta.get('bootId')) });
    // A cooldown begins with the end of a lease.
    journal.putLease(STAND_IN);
    journal.eraseLease(`${STAND_IN.containerId}/${STAND_IN.ifName}`, bodiesOf<Cooldown>(dump, 'cooldown'));
    for (const lease of bodiesOf<Lease>(dump, 'lease')) journal.putLease(lease);
    for (const record of bodiesOf<EniRecord>(dump, 'eni')) journal.putEni(record);
    journal.putOffers(bodiesOf<Offer>(dump, 'offer'));
    const [supply, ruleMode, life, pods] = ['supply', 'ruleMode', 'life', 'pods'].map((name) => meta.get(name));
    if (supply !== undefined) journal.putSupply(supply as Supply);
    if (ruleMode !== undefined) journal.putRuleMode(ruleMode as RuleMode);
    if (life !== undefined) journal.putLife(String(life));
    if (pods !== undefined) journal.putPods(pods as readonly RecordedPod[]);
    if (!meta.has('adoption')) journal.markAdopted();
    journal.close();
    return dumpJournal(path);
  } finally {
    dir.close();
  }
}

/** Takes from a journal what the first version of the schema did not have. */
export function withoutOffers({ tables, rows, ...file }: JournalDump): JournalDump {
  const { offer: _table, ...otherTables } = tables;
  const { offer: _rows, ...otherRows } = rows;
  return { ...file, userVersion: 1, tables: otherTables, rows: otherRows };
}

const STAND_IN: Lease = {
  ...{ containerId: 'stand-in', ifName: 'eth0', network: 'n', plugin: 'ipam', netns: '/n' },
  ...{ podNamespace: '', podName: '', podUid: '', addresses: [], eniId: 'eni-0', state: 'active' },
  ...{ mtu: 1500, createdAtMs: 0 },
};

/** Returns a clock by which the last cooldown of a journal has just begun: a deadline far ahead would be of another clock. */
export function clockOf(dump: JournalDump): { bootMs(): number } {
  const begun = bodiesOf<Cooldown>(dump, 'cooldown').map(({ freedAtMs }) => freedAtMs);
  return { bootMs: () => Math.max(0, ...begun) };
}

/** Returns the named values of a journal. */
export function metaOf(dump: JournalDump): ReadonlyMap<string, unknown> {
  return new Map((dump.rows['meta'] ?? []).map(({ name, body }) => [String(name), body]));
}

/** Returns the JSON of a table's rows. */
export function bodiesOf<T>(dump: JournalDump, table: string): readonly T[] {
  return (dump.rows[table] ?? []).map(({ body }) => body as T);
}

function parsed(row: JsonObject): JsonObject {
  const entries = Object.entries(row).map(([column, item]) => {
    const isJson = column === 'body' && typeof item === 'string' && item.startsWith('{');
    return [column, isJson ? (JSON.parse(item) as unknown) : item] as const;
  });
  return Object.fromEntries(entries);
}
