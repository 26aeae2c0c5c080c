import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs a job while no other process does, for test files that build at the same time. The lock is the kernel's, by way
 * of an empty database: it ends with the process that has it, however that ends. Leaves the file at `path`.
 */
export async function withLock<T>(path: string, job: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  using database = new DatabaseSync(path);
  while (!tryLock(database)) await sleep(POLL_MS);
  return await job();
}

const POLL_MS = 100;
/** @see https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5;

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return false;
    throw error;
  }
}
