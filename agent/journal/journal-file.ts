import {
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ensureFolder } from '../../runtime/folder.ts';
import { kindOfFile } from '../../runtime/read-regular-file.ts';

// All space that the journal may need on a full disk is allocated beforehand: pages in the database (a free list, see
// `reserve`) and bytes in the rollback journal, which `journal_mode=persist` overwrites in place.
//
// A crash can leave no file, `journal.db.new` (half made, removed on the next open) or a complete `journal.db`, because
// a new file is built beside and renamed. So a file at the path that is empty or unreadable was damaged by something
// else.

/**
 * Raise it when another layout is written. An older file for which there is a step in `UPGRADES` is upgraded in place.
 * One of any other version is replaced, and its leases are adopted again.
 */
const SCHEMA_VERSION = 2;
/** 'tken': distinguishes our files from other SQLite files. */
const APPLICATION_ID = 0x746b656e;
/** Page size of the database, bytes. */
export const PAGE_BYTES = 4096;
/** Initial size of the database; a node of 250 Pods uses a third of it. */
const INITIAL_BYTES = 1024 * 1024;
/**
 * Size of the rollback journal, forty pages: the largest transaction, a new supply of a thousand addresses, saves
 * fewer.
 */
const ROLLBACK_BYTES = 160 * 1024;
/** Number of damaged files that are retained: older ones are of no use, and /run is small. */
const MAX_DAMAGED_FILES = 3;

const OFFER_TABLE = 'CREATE TABLE offer (ip TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;';

/** SQL statements that lead from the version that is the key to the next. */
const UPGRADES: ReadonlyMap<number, string> = new Map([[1, OFFER_TABLE]]);

const SCHEMA = `
  CREATE TABLE meta     (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE lease    (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
  -- One row per address in use: the primary key is the promise that an address has one owner.
  CREATE TABLE lease_address (ip TEXT PRIMARY KEY, lease_key TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE cooldown (ip TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE eni      (eni_id TEXT PRIMARY KEY, table_id INTEGER NOT NULL UNIQUE, slot INTEGER NOT NULL UNIQUE,
                         body TEXT NOT NULL) STRICT, WITHOUT ROWID;
  ${OFFER_TABLE}
  CREATE TABLE reserve  (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
`;

/** What tells a file from another at the same path, and from itself before it was truncated. */
export type FileIdentity = { readonly dev: number; readonly ino: number; readonly bytes: number };

/** Reads the identity of a file; undefined when no regular file is there, nor a link that leads to one. */
export function identify(path: string): FileIdentity | undefined {
  const stat = statOf(path);
  return stat?.isFile() === true ? { dev: stat.dev, ino: stat.ino, bytes: stat.size } : undefined;
}

/** Reports whether anything stands at a path: also a folder, a device, a link that leads nowhere. */
export function isOccupied(path: string): boolean {
  return unless('ENOTDIR', () => lstatSync(path, { throwIfNoEntry: false })) !== undefined;
}

/** Returns undefined when nothing is there, or a link that leads nowhere or to itself. */
function statOf(path: string): Stats | undefined {
  return unless('ELOOP', () => statSync(path, { throwIfNoEntry: false }));
}

function unless<T>(code: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === code) return undefined;
    throw error;
  }
}

/** SQLite would wait for a FIFO, and write to a device. */
function assertRegular(path: string): void {
  if (!isOccupied(path) || identify(path) !== undefined) return;
  const stat = statOf(path);
  throw new Error(
    `${path} is ${stat === undefined ? 'a link that leads nowhere' : kindOfFile(stat)}, not a regular file`,
  );
}

/** Returns the path of the rollback journal that SQLite keeps beside a database. */
export function rollbackPath(path: string): string {
  return `${path}-journal`;
}

/**
 * Creates a complete, empty database at `path` by one rename; replaces an existing one. Mode 0600; creates the folder
 * too.
 * @throws node:sqlite errors and file system errors; no file remains then.
 */
export function createDatabase(path: string, bootId: string): void {
  const temporary = `${path}.new`;
  ensureFolder(dirname(path), 0o700);
  removeDatabase(temporary);
  try {
    // SQLite keeps an empty file that exists, its mode included.
    closeSync(openSync(temporary, 'wx', 0o600));
    using database = new DatabaseSync(temporary);
    database.exec(`
      PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = none; PRAGMA journal_mode = memory; PRAGMA synchronous = off;
      PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};
      BEGIN; ${SCHEMA} COMMIT;
    `);
    // Written together with the file: an agent that is killed before it found the running Pods must not leave a journal
    // that seems complete.
    database.prepare("INSERT INTO meta VALUES ('bootId', ?), ('adoption', 'due')").run(bootId);
    growDatabase(database, INITIAL_BYTES);
    database.close();
    rmSync(rollbackPath(path), { force: true, recursive: true });
    renameSync(temporary, path);
  } catch (error) {
    removeDatabase(temporary);
    throw error;
  }
}

/** Adds free pages to the file: pages that were written once and freed stay in the file. @throws SQLITE_FULL */
export function growDatabase(database: DatabaseSync, bytes: number): void {
  database.prepare('INSERT INTO reserve (body) VALUES (zeroblob(?))').run(bytes);
  database.exec('DELETE FROM reserve');
}

/**
 * Opens a database exclusively and takes the lock at once. SQLite rolls back an unfinished transaction of a crash here.
 * `synchronous=off` is safe: the writes of a killed process are in the kernel, and a reboot ends every sandbox.
 * @throws Error when it or its rollback journal is no regular file; the errors of node:sqlite and the file system
 */
export function openDatabase(path: string): DatabaseSync {
  assertRegular(path);
  assertRegular(rollbackPath(path));
  preallocateRollback(path);
  const database = new DatabaseSync(path);
  try {
    database.exec(`
      PRAGMA locking_mode = exclusive; PRAGMA journal_mode = persist; PRAGMA synchronous = off;
      PRAGMA temp_store = memory; PRAGMA cache_spill = off;
      BEGIN EXCLUSIVE; COMMIT;
    `);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Describes what is wrong with an open database; empty when it is a whole journal of a readable schema version. */
export function findDamage(database: DatabaseSync): string {
  const value = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0];
  if (value('PRAGMA application_id') !== APPLICATION_ID) return 'not a journal of this program';
  const version = Number(value('PRAGMA user_version'));
  if (version !== SCHEMA_VERSION && !UPGRADES.has(version)) return `schema version ${version}, not ${SCHEMA_VERSION}`;
  const check = value('PRAGMA quick_check(1)');
  return check === 'ok' ? '' : String(check);
}

/** Upgrades a whole journal of an older schema version, in one transaction. Idempotent. @throws SQLITE_FULL */
export function upgradeDatabase(database: DatabaseSync): void {
  const version = Number(Object.values(database.prepare('PRAGMA user_version').get() ?? {})[0]);
  if (version === SCHEMA_VERSION) return;
  const steps = [...UPGRADES].filter(([from]) => from >= version).map(([, sql]) => sql);
  database.exec(`BEGIN; ${steps.join('\n')} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
}

/**
 * Moves a damaged database, or what stands in its place, aside, for people to inspect, and retains the last few. Returns
 * its new path.
 */
export function moveAside(path: string): string {
  const prefix = `${basename(path)}.damaged-`;
  const numbers = readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d{1,15}$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
  const pathOf = (number: number) => join(dirname(path), `${prefix}${number}`);
  for (const old of numbers.slice(0, Math.max(0, numbers.length + 1 - MAX_DAMAGED_FILES)))
    removeIfPossible(pathOf(old));
  const target = pathOf((numbers.at(-1) ?? 0) + 1);
  renameSync(path, target);
  // The rollback journal moves along under the name by which SQLite finds it; without one nothing is lost.
  if (isOccupied(rollbackPath(path))) renameSync(rollbackPath(path), rollbackPath(target));
  return target;
}

/** Removes all files that were moved aside: the last resort when there is no space for a new journal. */
export function removeAllAside(path: string): void {
  const prefix = `${basename(path)}.damaged-`;
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(prefix)) removeIfPossible(join(dirname(path), name));
  }
}

/** What cannot be removed, such as a mount, takes no place of ours: the next number is free. */
function removeIfPossible(path: string): void {
  try {
    removeDatabase(path);
  } catch {
    // The journal is made again beside it.
  }
}

/** Removes a database and its rollback journal, or the folders in their places. Idempotent. */
export function removeDatabase(path: string): void {
  rmSync(path, { force: true, recursive: true });
  rmSync(rollbackPath(path), { force: true, recursive: true });
}

/**
 * Fills the rollback journal with zeros up to its size; SQLite reads a zero there as "nothing to roll back". One that
 * begins with another byte is left of a crash and must stay as it is.
 */
function preallocateRollback(path: string): void {
  const rollback = rollbackPath(path);
  const fd = openSync(rollback, 'a+', 0o600);
  try {
    const first = Buffer.alloc(1);
    const isIdle = readSync(fd, first, 0, 1, 0) === 0 || first[0] === 0;
    const missingBytes = ROLLBACK_BYTES - fstatSync(fd).size;
    if (isIdle && missingBytes > 0) writeFileSync(fd, Buffer.alloc(missingBytes));
  } finally {
    closeSync(fd);
  }
}
