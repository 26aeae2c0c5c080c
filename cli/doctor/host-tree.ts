import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';

/** The host's files below a root folder, as a process of the host sees them. */
export type HostTree = {
  readonly root: string;
  /** Text of a file; undefined when it is not there. @throws Error when it may not be read */
  text(path: string): string | undefined;
  /** Names in a folder, sorted; none when it is not there. @throws Error when it may not be read */
  names(path: string): readonly string[];
  has(path: string): boolean;
};

/** Opens the tree of files below `root`; absolute links lead to places below it. */
export function openHostTree(root: string): HostTree {
  const at = (path: string) => resolveHostPath(root, path);
  return {
    root,
    text: (path) => unlessMissing(() => readFileSync(at(path), 'utf8')),
    names: (path) => unlessMissing(() => readdirSync(at(path)).sort()) ?? [],
    has: (path) => existsSync(at(path)),
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

/** A folder that another process removes meanwhile, or a file in the place of one, is as good as missing. */
const MISSING = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EINVAL', 'EISDIR']);

function unlessMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && MISSING.has(String(error.code))) return undefined;
    throw error;
  }
}
