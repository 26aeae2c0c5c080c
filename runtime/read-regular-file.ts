import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { ByteCollector } from './byte-collector.ts';

/**
 * Reads a whole regular file of at most `maxBytes`. Links are followed: files of Secrets and ConfigMaps are links. What
 * may block or never end (a FIFO, a device, a socket, a folder) is refused before it is opened, since the open of a
 * device may have effects.
 * @throws FileError; the file system's own error (ENOENT, EACCES, ELOOP, …)
 */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  assertRegular(path, statSync(path));
  // What stands there may have been replaced since: the open must not wait, and what was opened is looked at again.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stat = fstatSync(fd);
    assertRegular(path, stat);
    return readAll(fd, path, stat.size, maxBytes);
  } finally {
    closeSync(fd);
  }
}

/** As `readRegularFile`, as UTF-8. */
export function readRegularText(path: string, maxBytes: number): string {
  return readRegularFile(path, maxBytes).toString('utf8');
}

/** Describes what is no regular file: 'a FIFO', 'a folder'. Links count as what they lead to. */
export function kindOfFile(stat: Stats): string {
  if (stat.isFile()) return 'a regular file';
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a FIFO';
  if (stat.isSocket()) return 'a socket';
  return stat.isSymbolicLink() ? 'a link' : 'a device';
}

/** The kind of failure: what stands at the path is no regular file, or has too many bytes. */
type FileErrorCode = 'NOT_A_FILE' | 'FILE_TOO_LARGE';

/** A file that is not read. */
export class FileError extends Error {
  override readonly name = 'FileError';
  readonly code: FileErrorCode;
  readonly path: string;

  constructor(code: FileErrorCode, path: string, problem: string) {
    super(`${path} ${problem}`);
    this.code = code;
    this.path = path;
  }
}

function assertRegular(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new FileError('NOT_A_FILE', path, `is ${kindOfFile(stat)}, not a regular file`);
}

/** Files of /proc report size 0, and a file may grow: it is read until its end. */
function readAll(fd: number, path: string, size: number, maxBytes: number): Buffer {
  const tooLarge = () => new FileError('FILE_TOO_LARGE', path, `has more than ${maxBytes} bytes`);
  if (size > maxBytes) throw tooLarge();
  const content = new ByteCollector(maxBytes);
  const chunk = Buffer.allocUnsafe(Math.max(size + 1, CHUNK_BYTES));
  for (;;) {
    const count = readSync(fd, chunk, 0, chunk.length, null);
    if (count === 0) return content.take();
    if (content.append(chunk.subarray(0, count)) !== undefined) throw tooLarge();
  }
}

const CHUNK_BYTES = 16 * 1024;
