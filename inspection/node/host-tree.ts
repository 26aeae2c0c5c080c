import { closeSync, constants, existsSync, openSync, readdirSync, readlinkSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { messageOf } from '../../runtime/error-text.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { known, unknown } from './known.ts';
import type { Known } from './node-facts.ts';

/** Files of the host below a root folder, with paths as on the host. */
export type HostTree = {
  readonly root: string;
  /**
   * Reads a file, of a large one the first MiB; undefined when it does not exist. @throws Error when permission is
   * missing
   */
  text(path: string): string | undefined;
  /** Lists the names in a folder, sorted; [] when it does not exist. @throws Error when permission is missing */
  names(path: string): readonly string[];
  has(path: string): boolean;
  /**
   * Returns the last part of a symbolic link's target; undefined when there is no link.
   * @throws Error when permission is missing
   */
  linkName(path: string): string | undefined;
};

/** Opens the files below `root`. Absolute symbolic links are resolved below it. */
export function openHostTree(root: string): HostTree {
  const at = (path: string) => resolveHostPath(root, path);
  return {
    root,
    text: (path) => unlessMissing(() => readText(at(path))),
    names: (path) => unlessMissing(() => readdirSync(at(path)).sort()) ?? [],
    has: (path) => existsSync(at(path)),
    linkName: (path) => unlessMissing(() => basename(readlinkSync(`${at(dirname(path))}/${basename(path)}`))),
  };
}

/** Runs a read. Where it fails, the result is unknown, with the reason and the next step. */
export function knownFrom<T>(read: () => T): Known<T> {
  try {
    return known(read());
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const text = messageOf(error);
    if (code === 'EACCES' || code === 'EPERM') return unknown(`${deniedPath(error)} is not readable`, 'run as root');
    return unknown(text, 'look at it by hand');
  }
}

function deniedPath(error: unknown): string {
  return error instanceof Error && 'path' in error ? String(error.path) : 'it';
}

/** Largest text that is read, bytes. Configuration files are smaller; a log file in their place may be larger. */
const MAX_BYTES = 1 << 20;

/**
 * Reads a regular file. Other files read as '': a pipe without a writer, /dev/null as a mask. Folders read as
 * undefined.
 */
function readText(path: string): string | undefined {
  const stat = statSync(path);
  if (!stat.isFile()) return stat.isDirectory() ? undefined : '';
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    // Files of /proc report size 0, so the buffer has the largest size.
    const bytes = Buffer.alloc(MAX_BYTES);
    let end = 0;
    for (let count = -1; count !== 0 && end < MAX_BYTES; end += count) {
      count = readSync(fd, bytes, end, MAX_BYTES - end, null);
    }
    return bytes.toString('utf8', 0, end);
  } finally {
    closeSync(fd);
  }
}

/**
 * Error codes that count as missing: another process has removed the folder meanwhile, a file is in its place, or
 * symbolic links form a loop.
 */
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EINVAL', 'EISDIR', 'ELOOP', 'ENXIO', 'ENAMETOOLONG']);

function unlessMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && MISSING.has(String(error.code))) return undefined;
    throw error;
  }
}
