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
 * Writes a file atomically, readable by its owner only. It writes to a temporary name beside it first. That name is
 * random and must not exist, so that no link placed there is followed: the folder may be /tmp.
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
 * Checks, before any part is collected, whether an archive can be written to a path. An existing path must be a regular
 * file: root's rename would replace /dev/null by the archive.
 * @throws Error, the file system's own too
 */
export function checkTarget(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile())
    throw new Error(`${path} is ${stat.isDirectory() ? 'a folder' : 'no file'}`);
  accessSync(dirname(path), constants.W_OK | constants.X_OK);
}
