import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs a job while no other process does, for test files that build at the same time. A lock whose owner died is taken
 * over.
 */
export async function withLock<T>(path: string, job: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  while (!tryLock(path)) await sleep(POLL_MS);
  try {
    return await job();
  } finally {
    rmSync(path, { force: true });
  }
}

const POLL_MS = 100;

function tryLock(path: string): boolean {
  try {
    const fd = openSync(path, 'wx');
    writeSync(fd, String(process.pid));
    closeSync(fd);
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    const owner = readOwner(path);
    if (owner !== '' && !existsSync(`/proc/${owner}`)) rmSync(path, { force: true });
    return false;
  }
}

function readOwner(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Released at this moment.
    return '';
  }
}
