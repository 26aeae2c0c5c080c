import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

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

/**
 * Tells before the work whether an archive can be written there. What is no plain file stays: as root a rename would put
 * the archive in the place of /dev/null.
 * @throws Error, the file system's own too
 */
export function checkTarget(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile())
    throw new Error(`${path} is ${stat.isDirectory() ? 'a folder' : 'no file'}`);
  accessSync(dirname(path), constants.W_OK | constants.X_OK);
}
