import { closeSync, constants, mkdirSync, openSync, stat, statSync, unlinkSync } from 'node:fs';
import { kindOfFile } from '../runtime/read-regular-file.ts';
import { LibcError } from './errno.ts';
import { ioctl, mount, setns, umount2, unshare } from './libc.ts';

const CLONE_NEWNET = 0x40000000;
const MS_BIND = 0x1000;
const MS_REC = 0x4000;
const MS_SHARED = 0x100000;
const MNT_DETACH = 2;
/** ioctl that returns the kind of a descriptor's namespace; ENOTTY for all other files. @see ioctl_ns(2) */
const NS_GET_NSTYPE = 0xb703;
const NETNS_FOLDER = '/run/netns';
/** The namespace of the calling thread; /proc/self would be that of the main thread, also in a Worker. */
const OWN_NETNS = '/proc/thread-self/ns/net';
/** libuv starts all its threads at the first use of the pool; more requests than threads ensure it. */
const POOL_WARMING_REQUESTS = 8;

/** A network namespace that cannot be opened, made or removed. */
export class NetnsError extends Error {
  override readonly name = 'NetnsError';
  /** 'ENOENT', 'NOT_A_NETNS', 'INVALID_NAME' or the name of an errno. */
  readonly code: string;
  readonly path: string;

  constructor(code: string, path: string, problem: string, cause?: unknown) {
    super(`${code}: network namespace ${path}: ${problem}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.path = path;
  }
}

/** A network namespace that is held open; its owner must close it. */
export type OpenNetns = Disposable & { readonly fd: number; readonly path: string; close(): void };

/** Holds a network namespace of this machine open. Does not enter it. */
export class Netns implements OpenNetns {
  readonly fd: number;
  readonly path: string;
  #isOpen = true;

  constructor(fd: number, path: string) {
    this.fd = fd;
    this.path = path;
  }

  /** Closes the descriptor; the namespace exists as long as anything else refers to it. Idempotent. */
  close(): void {
    if (this.#isOpen) {
      this.#isOpen = false;
      closeSync(this.fd);
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Excludes promises: code after an `await` would run in the wrong namespace. */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T;

/**
 * Opens a network namespace by path, as `/run/netns/blue` or `/proc/1/ns/net`.
 * @throws NetnsError 'ENOENT', 'NOT_A_NETNS' or the errno of open(2)
 */
export function openNetns(path: string): Netns {
  let fd: number;
  try {
    // Namespaces are regular files. The open of a device may have effects, so the kind is looked at first.
    const found = statSync(path);
    if (!found.isFile()) throw new NetnsError('NOT_A_NETNS', path, `is ${kindOfFile(found)}`);
    // What stands there may have been replaced since: the open of a FIFO would wait for a writer, and the process with it.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (error instanceof NetnsError) throw error;
    const code = errorCode(error);
    throw new NetnsError(code, path, code === 'ENOENT' ? 'does not exist' : 'cannot be opened', error);
  }
  const problem = whyNotNetns(fd);
  if (problem !== undefined) {
    closeSync(fd);
    throw new NetnsError('NOT_A_NETNS', path, problem);
  }
  return new Netns(fd, path);
}

/** Opens the namespace of the calling thread. @throws NetnsError */
export function openOwnNetns(): Netns {
  return openNetns(OWN_NETNS);
}

function whyNotNetns(fd: number): string | undefined {
  try {
    return ioctl(fd, NS_GET_NSTYPE) === CLONE_NEWNET ? undefined : 'is a namespace, but not of the network';
  } catch (error) {
    if (error instanceof LibcError) {
      return 'is no namespace';
    }
    throw error;
  }
}

/**
 * Makes a named network namespace that `ip netns` lists, with its loopback down. The owner deletes it by name.
 * @throws NetnsError 'INVALID_NAME', 'EEXIST'
 */
export function createNetns(name: string): Netns {
  const path = netnsPath(name);
  shareNetnsFolder();
  try {
    closeSync(openSync(path, 'wx', 0o444));
  } catch (error) {
    const code = errorCode(error);
    throw new NetnsError(code, path, code === 'EEXIST' ? 'exists already' : 'cannot be made', error);
  }
  const host = openOwnNetns();
  try {
    unshare(CLONE_NEWNET);
    try {
      mount(OWN_NETNS, path, 'none', MS_BIND);
    } finally {
      returnOrAbort(host);
    }
    return openNetns(path);
  } catch (error) {
    unlinkSync(path);
    throw error instanceof NetnsError ? error : new NetnsError(errorCode(error), path, 'cannot be made', error);
  } finally {
    host.close();
  }
}

/**
 * Makes a network namespace without a name, with its loopback down: it is deleted with its last user, this process
 * included. Others reach it by `/proc/<pid>/fd/<fd>` while its owner has it open. Needs no writable folder.
 * @throws NetnsError
 */
export function createUnnamedNetns(): Netns {
  const host = openOwnNetns();
  try {
    unshare(CLONE_NEWNET);
    try {
      return openOwnNetns();
    } finally {
      returnOrAbort(host);
    }
  } catch (error) {
    if (error instanceof NetnsError) throw error;
    throw new NetnsError(errorCode(error), OWN_NETNS, 'cannot be made', error);
  } finally {
    host.close();
  }
}

/** Removes the name of a namespace; the namespace is deleted with its last user. Idempotent. @throws NetnsError */
export function deleteNetns(name: string): void {
  const path = netnsPath(name);
  try {
    umount2(path, MNT_DETACH);
  } catch (error) {
    // EINVAL: a file without a mount, left by a creation that was killed.
    if (!(error instanceof LibcError && (error.code === 'EINVAL' || error.code === 'ENOENT'))) {
      throw new NetnsError(errorCode(error), path, 'cannot be unmounted', error);
    }
  }
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') {
      throw new NetnsError(errorCode(error), path, 'cannot be removed', error);
    }
  }
}

/**
 * Runs `run` with the calling thread in `netns`, then returns to the previous namespace. Inside, only open sockets and
 * use `fs.*Sync` under /proc/sys; do nothing that yields, spawns or starts a worker: pool threads and children have, or
 * inherit, other namespaces. Aborts the process if it cannot return, because a thread must not continue in the wrong
 * namespace.
 * @throws NetnsError when the namespace cannot be entered, and what `run` throws
 */
export function withNetns<T>(netns: { readonly fd: number }, run: () => Sync<T>): Sync<T> {
  const host = openReturn();
  try {
    try {
      setns(netns.fd, CLONE_NEWNET);
    } catch (error) {
      throw new NetnsError(errorCode(error), `descriptor ${netns.fd}`, 'cannot be entered', error);
    }
    try {
      return withoutPromise(run());
    } finally {
      returnOrAbort(host);
    }
  } finally {
    host.close();
  }
}

/** As `openOwnNetns`, without a look at what it is: that is certain here, and it happens several times for each Pod. */
function openReturn(): Netns {
  try {
    return new Netns(openSync(OWN_NETNS, constants.O_RDONLY), OWN_NETNS);
  } catch (error) {
    throw new NetnsError(errorCode(error), OWN_NETNS, 'cannot be opened', error);
  }
}

/**
 * Starts all threads of libuv's pool in the current namespace. Await it first in `main`: a thread inherits the
 * namespace of the moment it starts, and never leaves it.
 */
export async function warmThreadPool(): Promise<void> {
  await Promise.all(Array.from({ length: POOL_WARMING_REQUESTS }, occupyPoolThread));
}

/**
 * Keeps a thread of the pool busy for a moment. Without node:fs/promises: loading it costs 1.5 ms, and the CLI starts
 * often.
 */
function occupyPoolThread(): Promise<void> {
  return new Promise((resolve, reject) => {
    stat('/', (error) => (error === null ? resolve() : reject(error)));
  });
}

function withoutPromise<T>(value: T): T {
  // The type forbids it; plain JavaScript and casts do not.
  if (typeof value === 'object' && value !== null && 'then' in value) {
    throw new TypeError('withNetns: the function must be synchronous, but it returned a promise');
  }
  return value;
}

function returnOrAbort(host: Netns): void {
  try {
    setns(host.fd, CLONE_NEWNET);
  } catch {
    process.abort();
  }
}

function netnsPath(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new NetnsError('INVALID_NAME', JSON.stringify(name), 'a name is one path component');
  }
  return `${NETNS_FOLDER}/${name}`;
}

/**
 * Makes /run/netns a shared mount, as `ip netns add` does: names then appear and vanish in other mount namespaces too.
 */
function shareNetnsFolder(): void {
  mkdirSync(NETNS_FOLDER, { recursive: true, mode: 0o755 });
  try {
    mount('', NETNS_FOLDER, 'none', MS_SHARED | MS_REC);
  } catch (error) {
    if (!(error instanceof LibcError && error.code === 'EINVAL')) {
      throw new NetnsError(errorCode(error), NETNS_FOLDER, 'cannot be made a shared mount', error);
    }
    // EINVAL: not a mount point yet.
    mount(NETNS_FOLDER, NETNS_FOLDER, 'none', MS_BIND | MS_REC);
    mount('', NETNS_FOLDER, 'none', MS_SHARED | MS_REC);
  }
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN';
}
