import { accessSync, constants, readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readBootId } from '../../../agent/journal/boot-id.ts';
import { readJournal } from '../../../agent/journal/read-journal.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import type { StateDirFacts } from './doctor-facts.ts';

/** TMPFS_MAGIC. @see statfs(2) */
const TMPFS_MAGIC = 0x01021994;
/** RAMFS_MAGIC: a ramfs too is empty after a reboot. */
const RAMFS_MAGIC = 0x858458f6;

/** Reads the agent's state folder. @throws Error EACCES without root */
export function readStateDir(path: string): StateDirFacts {
  if (!isThere(path)) {
    const nothing = { isTmpfs: false, freeBytes: 0, totalBytes: 0, spooled: 0, rejected: 0 };
    return { path, exists: false, journal: 'missing', ...nothing };
  }
  const { type, bavail, bsize, blocks } = statfsSync(path);
  const spool = join(path, 'deletions');
  const spooled = isThere(spool) ? readdirSync(spool) : [];
  return {
    path,
    exists: true,
    journal: readJournalState(join(path, 'journal.db')),
    isTmpfs: type === TMPFS_MAGIC || type === RAMFS_MAGIC,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    spooled: spooled.filter((name) => name.endsWith('.json')).length,
    rejected: spooled.filter((name) => name.endsWith('.rejected')).length,
  };
}

/** Returns whether a path exists. Unlike existsSync it throws where permission is missing. @throws Error EACCES */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return false;
    throw error;
  }
}

function readJournalState(path: string): StateDirFacts['journal'] {
  if (!isThere(path)) return 'missing';
  accessSync(path, constants.R_OK);
  try {
    return readJournal(path).bootId === readBootId() ? 'there' : 'other-boot';
  } catch (error) {
    return { damage: messageOf(error) };
  }
}
