import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JournalContent } from './journal-content.ts';
import { JournalError } from './journal-error.ts';
import { findDamage, openDatabase, rollbackPath } from './journal-file.ts';
import { contentOf, readTables } from './journal-tables.ts';

/** A writer that changes the file in each of so many looks is not there: one transaction takes 0.05 ms, a look 1 ms. */
const LOOKS = 50;

/**
 * Reads a journal that an agent may have open, without disturbing it: for tools and checks, read only. Takes a copy of
 * the file and its rollback journal that did not change between two looks; half a transaction in it is rolled back there.
 *
 * `needsAdoption`: the file was made anew and no agent has looked for Pods that live yet, so what it lacks is no proof.
 *
 * @param folders where the copy may lie, the first that can be written: a container with a read-only root has no other place
 * than its shared memory.
 * @throws JournalError JOURNAL_BROKEN when there is no journal, or a damaged one, or no room for the copy.
 */
export function readJournal(
  path: string,
  folders: readonly string[] = [tmpdir(), '/dev/shm'],
): JournalContent & { readonly bootId: string; readonly needsAdoption: boolean } {
  let copy: string | undefined;
  try {
    copy = makeFolder(folders);
    const target = join(copy, 'journal.db');
    const { file, rollback } = lookTwice(path);
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

type Look = { readonly file: Buffer; readonly rollback: Buffer };

function lookTwice(path: string): Look {
  let before = look(path);
  for (let i = 0; i < LOOKS; i++) {
    const now = look(path);
    if (now.rollback.equals(before.rollback) && now.file.equals(before.file)) return now;
    before = now;
  }
  throw new Error('it changes all the time');
}

/** The rollback journal first: a transaction writes there before it touches the file. */
function look(path: string): Look {
  const rollback = readRollback(rollbackPath(path));
  return { rollback, file: readFileSync(path) };
}

/** Without the file there is nothing to roll back, as SQLite sees it: a copy of a journal at rest may come alone. */
function readRollback(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
