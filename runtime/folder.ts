import { chmodSync, lstatSync, mkdirSync, renameSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and its missing parents, with `mode`. Idempotent. Node's own `recursive` option retries forever when
 * an existing parent accepts no new folders (`/proc/x`); a caller with a deadline would hang.
 * @throws the file system's own error (ENOENT, ENOTDIR, EACCES, EROFS, ENOSPC, …).
 * @see mkdir(2)
 */
export function ensureFolder(path: string, mode = 0o755): void {
  if (makeFolder(path, mode) === 'made') return;
  ensureFolder(dirname(path), mode);
  mkdirSync(path, { mode });
}

/** Makes one folder. Returns 'orphan' when its parent is missing too: the parent has to be made first. */
function makeFolder(path: string, mode: number): 'made' | 'orphan' {
  try {
    mkdirSync(path, { mode });
    return 'made';
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return 'made';
    const isOrphan = code === 'ENOENT' && statSync(dirname(path), { throwIfNoEntry: false }) === undefined;
    if (isOrphan) return 'orphan';
    throw error;
  }
}

/**
 * Makes a folder that belongs to this program alone, with `mode`, and gives one that exists this mode. What stands in its place (a
 * file, a FIFO, a link that leads to no folder) is moved aside. Idempotent. Returns where that was moved; undefined when nothing was.
 * @throws the file system's own error
 */
export function reclaimFolder(path: string, mode: number): string | undefined {
  const stat = statOf(path);
  if (stat?.isDirectory() === true) {
    if ((stat.mode & 0o777) !== mode) chmodSync(path, mode);
    return undefined;
  }
  const movedTo = lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : moveAside(path);
  ensureFolder(path, mode);
  return movedTo;
}

/** Returns undefined when nothing is there, or a link that leads nowhere or to itself. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ELOOP') return undefined;
    throw error;
  }
}

/** Reports whether a name is of what `moveAside` moved from the place of `name`. */
export function isAside(name: string, of: string): boolean {
  return name.startsWith(`${of}.aside-`) && /^\d{1,15}$/.test(name.slice(`${of}.aside-`.length));
}

/** Moves what stands at a path to a free name beside it, for people to inspect. Returns that name. @throws the file system's own error */
export function moveAside(path: string): string {
  for (let number = 1; ; number++) {
    const target = `${path}.aside-${number}`;
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) continue;
    renameSync(path, target);
    return target;
  }
}
