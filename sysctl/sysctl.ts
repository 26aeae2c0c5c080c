import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NetnsRef } from '../netlink/link-message.ts';
import { type Sync, withNetns } from '../netlink/netns.ts';
import { encodeByteText, hasRawBytes } from '../runtime/byte-text.ts';
import { isSysctlError, SysctlError } from './sysctl-error.ts';
import { type SysctlKey, sysctlName } from './sysctl-key.ts';

/** What `set` did. */
type SysctlOutcome = 'changed' | 'unchanged';

/**
 * Reads and writes kernel settings of one network namespace. Synchronous: /proc/sys/net shows the namespace of the
 * calling thread.
 */
export type Sysctl = {
  /**
   * Returns the value without the final newline; several numbers are separated by one space.
   * @throws SysctlError NO_SUCH_KEY when the kernel or the interface lacks it.
   */
  get(key: SysctlKey): string;
  /** As `get`, but undefined for a key that does not exist (a deleted interface, a kernel without IPv6). */
  find(key: SysctlKey): string | undefined;
  /**
   * Writes `value` if it differs from the present one, and reads it back. Idempotent.
   * @throws SysctlError READ_ONLY, REFUSED (the kernel rejects the value), NOT_TAKEN (written, but another value is
   * read back), NO_SUCH_KEY.
   */
  set(key: SysctlKey, value: string): SysctlOutcome;
  /** As one `set` for each pair, but enters the namespace only once. Stops at the first failure. */
  setAll(pairs: readonly SysctlPair[]): readonly SysctlOutcome[];
};

/** A setting and the value it should have. An optional one is skipped when the kernel lacks it. */
type SysctlPair = { readonly key: SysctlKey; readonly value: string; readonly isOptional?: boolean };

/**
 * The same settings through the mounts of the host's first process. Container runtimes mount their own /proc/sys
 * read-only unless a container is privileged, and allow no mount over it. A container that shares the host's PID
 * namespace and has CAP_SYS_PTRACE can write here. @see proc_pid_root(5), runc checkProcMount
 */
const HOST_PROC_SYS = '/proc/1/root/proc/sys';

/**
 * Opens the settings of `netns`, or of the namespace the process runs in. There is nothing to close: each call opens
 * its file. When `root` is read-only, writes go to `writableRoot`.
 * @see proc_sys_net(5)
 */
export function openSysctl(netns?: NetnsRef, root = '/proc/sys', writableRoot = HOST_PROC_SYS): Sysctl {
  const within = <T>(run: () => Sync<T>): Sync<T> => (netns === undefined ? run() : withNetns(netns, run));
  return {
    get: (key) => within(() => read(root, key)),
    find: (key) => within(() => find(root, key)),
    set: (key, value) => within(() => write({ root, writableRoot }, key, value)),
    setAll: (pairs) => within(() => pairs.map((pair) => writePair({ root, writableRoot }, pair))),
  };
}

function read(root: string, key: SysctlKey): string {
  try {
    return normalise(readFileSync(pathOf(file(root, key)), 'utf8'));
  } catch (error) {
    throw sysctlError(root, key, 'read', error);
  }
}

function find(root: string, key: SysctlKey): string | undefined {
  try {
    return read(root, key);
  } catch (error) {
    if (isSysctlError(error, 'NO_SUCH_KEY')) return undefined;
    throw error;
  }
}

type Roots = { readonly root: string; readonly writableRoot: string };

/** @param present what was read just now */
function write(
  { root, writableRoot }: Roots,
  key: SysctlKey,
  value: string,
  present: string = read(root, key),
): SysctlOutcome {
  const desired = normalise(value);
  if (present === desired) return 'unchanged';
  try {
    writeFileSync(pathOf(file(root, key)), desired);
  } catch (error) {
    if (!isReadOnly(error) || !wasWritten(file(writableRoot, key), desired))
      throw sysctlError(root, key, `set to ${desired}`, error);
  }
  // Some keys clamp or ignore what they are given without an error.
  const after = read(root, key);
  if (after !== desired) {
    throw new SysctlError(
      'NOT_TAKEN',
      file(root, key),
      `sysctl ${sysctlName(key)}: wrote ${desired}, the kernel kept ${after}; look for a program that sets it too (sysctl --system, tuned)`,
    );
  }
  return 'changed';
}

/** Tries to write by the other path. When that fails too, the caller reports the error of the first path. */
function wasWritten(path: string, text: string): boolean {
  try {
    writeFileSync(pathOf(path), text);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'unknown') throw error;
    return false;
  }
}

function isReadOnly(error: unknown): boolean {
  return errnoOf(error) === 'EROFS';
}

function errnoOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function writePair(roots: Roots, { key, value, isOptional }: SysctlPair): SysctlOutcome {
  if (isOptional !== true) return write(roots, key, value);
  const present = find(roots.root, key);
  return present === undefined ? 'unchanged' : write(roots, key, value, present);
}

function file(root: string, key: SysctlKey): string {
  return join(root, ...key.path);
}

/** Returns a path as node:fs takes it: the name of an interface may have bytes that are not UTF-8. */
function pathOf(path: string): string | Buffer {
  return hasRawBytes(path) ? Buffer.from(encodeByteText(path)) : path;
}

function normalise(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ');
}

function sysctlError(root: string, key: SysctlKey, action: string, error: unknown): SysctlError {
  const errno = errnoOf(error);
  const what = `sysctl ${sysctlName(key)}: cannot ${action}`;
  switch (errno) {
    case 'ENOENT':
      return new SysctlError(
        'NO_SUCH_KEY',
        file(root, key),
        `${what}: no such key; the interface is gone or the kernel lacks it`,
        error,
      );
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new SysctlError(
        'READ_ONLY',
        file(root, key),
        `${what}: ${errno}; run privileged, with /proc/sys writable, or in the host's PID namespace with CAP_SYS_PTRACE`,
        error,
      );
    case 'EINVAL':
    case 'ERANGE':
      return new SysctlError('REFUSED', file(root, key), `${what}: the kernel refuses the value (${errno})`, error);
    default:
      return new SysctlError('IO', file(root, key), `${what}: ${errno}`, error);
  }
}
