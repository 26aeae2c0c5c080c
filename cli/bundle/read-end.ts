import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/**
 * Reads the end of a plain file, from a whole line on. Follows no link at the end of the path and waits for nobody: a
 * pipe, a device or a link to somewhere else may lie where a file is looked for.
 * @throws Error when it is no plain file; the file system's own error
 */
export function readEnd(path: string, bytes: number): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(`${path} is no plain file`);
    const from = Math.max(0, stat.size - bytes);
    // No more than was asked for: a file may grow, and some of /proc say that they are empty and never end.
    const text = readAt(fd, from, Math.min(bytes, stat.size)).toString('utf8');
    return from === 0 ? text : `[the first ${from} bytes are left out]\n${text.slice(text.indexOf('\n') + 1)}`;
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, from: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  let count = 0;
  while (count < bytes) {
    const read = readSync(fd, buffer, count, bytes - count, from + count);
    if (read === 0) break;
    count += read;
  }
  return buffer.subarray(0, count);
}
