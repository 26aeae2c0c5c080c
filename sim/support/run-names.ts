import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './run.ts';

/** Where each run leaves a note of its name prefix and its pid, so that a later run can sweep up after a crash. */
const NOTES_DIR = join(tmpdir(), 'tke-test-runs');

/** A prefix that no other run uses, recorded until `release`. */
export type RunPrefix = { readonly prefix: string; release(): void };

/** Reserves a name prefix such as `tke-test-3f9a1c-` for this process. */
export function reservePrefix(stem = 'tke-test-'): RunPrefix {
  const prefix = `${stem}${randomBytes(3).toString('hex')}-`;
  mkdirSync(NOTES_DIR, { recursive: true });
  const note = join(NOTES_DIR, prefix);
  writeFileSync(note, JSON.stringify({ pid: process.pid, started: startTimeOf(process.pid) }));
  return { prefix, release: () => rmSync(note, { force: true }) };
}

/**
 * Removes the network namespaces that crashed runs left behind, with the processes in them. Only prefixes with a note are touched, and only when
 * the process of the note is gone (same pid, other start time counts as gone). `removeExtras` is told each name first. Returns the names removed.
 */
export async function cleanupStale(
  stem = 'tke-test-',
  removeExtras: (netnsName: string) => Promise<void> = async () => undefined,
): Promise<readonly string[]> {
  const stale = readNotes().filter((note) => note.prefix.startsWith(stem) && !isAlive(note));
  if (stale.length === 0) return [];
  const names = (await listNetnsNames()).filter((name) => stale.some((note) => name.startsWith(note.prefix)));
  for (const name of names) {
    await removeExtras(name);
    // Another run may clean up the same leftovers at the same time.
    const pids = await run(['ip', 'netns', 'pids', name]).catch(() => '');
    for (const pid of pids.split('\n').filter(Boolean)) killQuietly(Number(pid));
  }
  await deleteNetnsNames(names);
  for (const note of stale) rmSync(join(NOTES_DIR, note.prefix), { force: true });
  return names;
}

/** Lists the named network namespaces of this mount namespace. */
export async function listNetnsNames(): Promise<readonly string[]> {
  try {
    return readdirSync('/run/netns').sort();
  } catch {
    return [];
  }
}

/** Deletes named network namespaces, all of them even when one is gone already. */
export async function deleteNetnsNames(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await run(['ip', '-force', '-batch', '-'], { input: names.map((name) => `netns del ${name}\n`).join('') }).catch(
    () => undefined,
  );
}

/** Ends a process; one that has ended meanwhile is no error. */
export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

type Note = { readonly prefix: string; readonly pid: number; readonly started: string };

function readNotes(): readonly Note[] {
  let names: readonly string[] = [];
  try {
    names = readdirSync(NOTES_DIR);
  } catch {
    return [];
  }
  return names.flatMap((prefix) => {
    try {
      const { pid, started } = JSON.parse(readFileSync(join(NOTES_DIR, prefix), 'utf8')) as Omit<Note, 'prefix'>;
      return [{ prefix, pid, started }];
    } catch {
      // Another run removed it, or is writing it at this moment: not ours to judge.
      return [];
    }
  });
}

function isAlive(note: Note): boolean {
  return startTimeOf(note.pid) === note.started;
}

/** Field 22 of /proc/PID/stat; empty when there is no such process. The name in field 2 may contain spaces. */
function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
