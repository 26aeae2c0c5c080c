import { closeSync, constants, existsSync, openSync, readdirSync, readlinkSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';

/** The host's files below a root folder, as a process of the host sees them. */
export type HostTree = {
  readonly root: string;
  /** Text of a file, of a huge one the beginning; undefined when it is not there. @throws Error when it may not be read */
  text(path: string): string | undefined;
  /** Names in a folder, sorted; none when it is not there. @throws Error when it may not be read */
  names(path: string): readonly string[];
  has(path: string): boolean;
  /** Last part of what a link leads to; undefined when there is no link. @throws Error when it may not be read */
  linkName(path: string): string | undefined;
};

/** Opens the tree of files below `root`; absolute links lead to places below it. */
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

/** Wraps a reading: what may not be read is unknown, with what to do. */
export function knownFrom<T>(read: () => T): Known<T> {
  try {
    return known(read());
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const text = error instanceof Error ? error.message : String(error);
    if (code === 'EACCES' || code === 'EPERM') return unknown(`${deniedPath(error)} is not readable`, 'run as root');
    return unknown(text, 'look at it by hand');
  }
}

function deniedPath(error: unknown): string {
  return error instanceof Error && 'path' in error ? String(error.path) : 'it';
}

/** No program's configuration is larger; a log that somebody put there by mistake is. */
const MOST_BYTES = 1 << 20;

/** Reads a regular file; of anything else (a pipe that nobody writes to, /dev/null as a mask) there is no text. */
function readText(path: string): string | undefined {
  const stat = statSync(path);
  if (!stat.isFile()) return stat.isDirectory() ? undefined : '';
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    // Files of /proc say that they are empty.
    const bytes = Buffer.alloc(MOST_BYTES);
    let end = 0;
    for (let count = -1; count !== 0 && end < MOST_BYTES; end += count) {
      count = readSync(fd, bytes, end, MOST_BYTES - end, null);
    }
    return bytes.toString('utf8', 0, end);
  } finally {
    closeSync(fd);
  }
}

/**
 * A folder that another process removes meanwhile, a file in the place of one, or a link that leads in a circle is as good
 * as missing.
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
