import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and its missing parents, with `mode`. Idempotent. Node's own `recursive` option retries for ever when
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
