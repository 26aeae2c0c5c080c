import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Writes a file that only its owner may read, so that there is the whole of it or nothing. The name beside it that it
 * bears until then cannot be guessed, and nothing that lies there is followed: the folder may be /tmp.
 * @throws the file system's own error
 */
export function writeArchive(path: string, content: Uint8Array): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.part`;
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    try {
      writeFileSync(fd, content);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
