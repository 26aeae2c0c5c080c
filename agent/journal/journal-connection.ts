import type { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import type { JournalOrigin } from './journal-content.ts';
import { JournalError } from './journal-error.ts';
import {
  createDatabase,
  type FileIdentity,
  findDamage,
  identify,
  isOccupied,
  moveAside,
  openDatabase,
  removeAllAside,
  removeDatabase,
  rollbackPath,
  upgradeDatabase,
} from './journal-file.ts';
import { type JournalMemory, readTables, TableWriter } from './journal-tables.ts';
import { isFull, isLocked } from './sqlite-error.ts';

/** An open database that this process has locked, and the identity of its files. */
export type Connection = {
  readonly database: DatabaseSync;
  readonly writer: TableWriter;
  identity: FileIdentity | undefined;
  readonly rollback: FileIdentity | undefined;
};

/** The result of opening. */
export type OpenResult = {
  readonly origin: JournalOrigin;
  readonly movedTo?: string;
  readonly connection?: Connection;
  readonly memory?: JournalMemory;
};

/**
 * Opens the file at `path` if it is a whole journal of this boot; else removes it or moves it aside.
 * @throws JournalError JOURNAL_LOCKED, JOURNAL_BROKEN
 */
export function openExisting(path: string, bootId: string, log: Logger): OpenResult {
  if (!isOccupied(path)) return { origin: 'fresh' };
  let database: DatabaseSync | undefined;
  let damage: string;
  try {
    database = openDatabase(path);
    damage = findDamage(database);
    if (damage === '') {
      const content = readTables(database);
      if (content.bootId === bootId) {
        upgradeDatabase(database);
        return { origin: 'existing', connection: connect(path, database), memory: content.memory };
      }
      database.close();
      removeDatabase(path);
      log.info('journal of another boot removed', { path, bootId: content.bootId });
      return { origin: 'replaced-other-boot' };
    }
  } catch (error) {
    if (isLocked(error)) throw lockedBy(path, error);
    // Whatever prevents the reading, the next step is the same: begin a new file, and adopt what the kernel holds.
    damage = messageOf(error);
  }
  closeQuietly(database);
  const movedTo = asJournalError(path, () => moveAside(path));
  log.error('journal damaged, moved aside', { path, movedTo, damage });
  return { origin: 'replaced-damaged', movedTo };
}

/** Creates a new file with the given content and opens it. @throws JournalError JOURNAL_FULL, JOURNAL_BROKEN */
export function connectNew(path: string, bootId: string, memory: JournalMemory): Connection {
  return asJournalError(path, () => {
    try {
      createDatabase(path, bootId);
    } catch (error) {
      if (!isFull(error)) throw error;
      removeAllAside(path);
      createDatabase(path, bootId);
    }
    const connection = connect(path, openDatabase(path));
    transact(connection.database, () => connection.writer.putAll(memory));
    return connection;
  });
}

function connect(path: string, database: DatabaseSync): Connection {
  return {
    database,
    writer: new TableWriter(database),
    identity: identify(path),
    rollback: identify(rollbackPath(path)),
  };
}

/** Creates the error for a database that another process has locked. */
export function lockedBy(path: string, cause: unknown): JournalError {
  return new JournalError('JOURNAL_LOCKED', path, 'another process has it open; stop the other agent', { cause });
}

/** Runs `change` in one transaction: all of it takes effect, or nothing. */
export function transact(database: DatabaseSync, change: () => void): void {
  database.exec('BEGIN');
  try {
    change();
    database.exec('COMMIT');
  } catch (error) {
    // SQLite has rolled back by itself when the disk is full.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Runs file operations and turns their errors into JOURNAL_FULL or JOURNAL_BROKEN. @throws JournalError */
export function asJournalError<T>(path: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    const isSpace = isFull(error);
    const hint = isSpace ? 'no space for a new one; free some' : `cannot be made: ${error}; see --state-dir`;
    throw new JournalError(isSpace ? 'JOURNAL_FULL' : 'JOURNAL_BROKEN', path, hint, { cause: error });
  }
}

/** Closes a handle whose file may be broken. */
export function closeQuietly(database: DatabaseSync | undefined): void {
  try {
    database?.close();
  } catch {
    // The handle of a broken file: nothing more can be done with it.
  }
}
