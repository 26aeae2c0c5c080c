import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRegularFile } from '../../runtime/read-regular-file.ts';
import type { JournalContent } from './journal-content.ts';
import { JournalError } from './journal-error.ts';
import { findDamage, openDatabase, rollbackPath } from './journal-file.ts';
import { contentOf, readTables } from './journal-tables.ts';

/**
 * Maximum number of reads. One transaction takes 0.05 ms, a read 1 ms: no writer changes the file during each of them.
 */
const MAX_READS = 50;
/** Largest file that is read, bytes. A journal of 250 Pods has a megabyte. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * Reads a journal that an agent may have open, without disturbing it: for tools and checks, read only. Takes a copy of
 * the file and its rollback journal that did not change between two reads; an unfinished transaction is rolled back in
 * it.
 *
 * `needsAdoption`: the file is new and no agent has looked for running Pods yet, so a missing lease proves nothing.
 *
 * @param folders Folders for the copy, of which the first writable one is used: a container with a read-only root can
 * only write to its shared memory.
 * @throws JournalError JOURNAL_BROKEN when there is no journal, or a damaged one, or no space for the copy.
 */
export function readJournal(
  path: string,
  folders: readonly string[] = [tmpdir(), '/dev/shm'],
): JournalContent & { readonly bootId: string; readonly needsAdoption: boolean } {
  let copy: string | undefined;
  try {
    copy = makeFolder(folders);
    const target = join(copy, 'journal.db');
    const { file, rollback } = readStable(path);
    writeFileSync(target, file);
    writeFileSync(rollbackPath(target), rollback);
    using database = openDatabase(target);
    const damage = findDamage(database);
    if (damage !== '') throw new Error(damage);
    const { memory, bootId } = readTables(database);
    return { ...contentOf(memory), bootId, needsAdoption: memory.needsAdoption };
  } catch (error) {
    throw new JournalError('JOURNAL_BROKEN', path, `cannot be read: ${error}`, { cause: error });
  } finally {
    if (copy !== undefined) rmSync(copy, { recursive: true, force: true });
  }
}

function makeFolder([folder = '', ...others]: readonly string[]): string {
  try {
    return mkdtempSync(join(folder, 'tke-journal-'));
  } catch (error) {
    if (others.length === 0) throw error;
    return makeFolder(others);
  }
}

type FileSnapshot = { readonly file: Buffer; readonly rollback: Buffer };

function readStable(path: string): FileSnapshot {
  let before = readFiles(path);
  for (let i = 0; i < MAX_READS; i++) {
    const now = readFiles(path);
    if (now.rollback.equals(before.rollback) && now.file.equals(before.file)) return now;
    before = now;
  }
  throw new Error('it changes all the time');
}

/** Reads the rollback journal first, because a transaction writes to it before it changes the file. */
function readFiles(path: string): FileSnapshot {
  const rollback = readRollback(rollbackPath(path));
  return { rollback, file: readRegularFile(path, MAX_BYTES) };
}

/**
 * Reads the rollback journal; without the file there is nothing to roll back, as in SQLite: a copy of an idle journal
 * may come alone.
 */
function readRollback(path: string): Buffer {
  try {
    return readRegularFile(path, MAX_BYTES);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
