import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { moveAside } from './folder.ts';

/**
 * Replaces a file atomically: a reader, or the state after a crash, has the old content or the new content, never a
 * part. Writes a temporary file in the same folder, syncs it, renames it and syncs the folder. Idempotent. The folder
 * must exist. A folder in the file's place is moved aside.
 * @param mode permission bits of the new file.
 * @throws the file system's own error (ENOSPC, EACCES, …); the temporary file is removed then.
 * @see rename(2)
 */
export function writeFileAtomically(path: string, content: string | Uint8Array, mode = 0o644): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // What stands in its place, of a killed process or of another one, is not opened: it may be a FIFO or a link.
    rmSync(temporary, { force: true, recursive: true });
    const fd = openSync(temporary, 'wx', mode);
    try {
      writeFileSync(fd, content);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) moveAside(path);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDirectory(dirname(path));
}

/** Makes a rename or a removal in `directory` durable. @see fsync(2), "Calling fsync() does not necessarily…" */
function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
