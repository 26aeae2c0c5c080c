import { chmodSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { startTimer } from '../../runtime/clock.ts';
import { ensureFolder, moveAside } from '../../runtime/folder.ts';
import { AgentError } from '../api/agent-error.ts';

/** Longest path that fits `struct sockaddr_un` with its closing zero. @see unix(7) */
const SUN_PATH_BYTES = 107;
/** Suffix of the name of a socket that is not served yet. */
export const NEW_SUFFIX = '.new';
const PROBE_MS = 2_000;

/**
 * Checks that no process serves on `path`. A socket file that refuses connections is left of a killed agent; the next
 * `publishSocket` replaces it. A process that is stopped (SIGSTOP) still accepts, and so counts as alive.
 * @throws AgentError ANOTHER_AGENT when something answers; SOCKET when the path cannot be a socket.
 */
export async function refuseLiveSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path + NEW_SUFFIX) > SUN_PATH_BYTES) {
    throw new AgentError('SOCKET', `socket path ${path} is longer than ${SUN_PATH_BYTES - NEW_SUFFIX.length} bytes`);
  }
  const stat = asSocketError(path, () => lstatSync(path, { throwIfNoEntry: false }));
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new AgentError('SOCKET', `${path} exists and is no socket; remove it or set --socket`);
  if (await accepts(path)) {
    throw new AgentError(
      'ANOTHER_AGENT',
      `another agent serves on ${path}; two writers would fight over the node's routes. Stop it, or set --socket and --state-dir`,
    );
  }
}

/**
 * Makes the socket visible at its final path only when it is ready: `listen` gets a name beside it, then the mode is
 * set, then it is renamed over whatever exists there. At no moment can anyone but root connect, and no client finds a
 * socket that is not served.
 */
export async function publishSocket(path: string, listen: (temporaryPath: string) => Promise<void>): Promise<void> {
  asSocketError(path, () => ensureFolder(dirname(path), 0o700));
  const temporary = path + NEW_SUFFIX;
  rmSync(temporary, { force: true, recursive: true });
  await listen(temporary);
  chmodSync(temporary, MODE);
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) moveAside(path);
  renameSync(temporary, path);
}

/** Only root connects. */
const MODE = 0o600;

/** Takes permissions away that others were given. @throws the file system's own error */
export function closeToOthers(path: string): void {
  if ((lstatSync(path).mode & 0o777) !== MODE) chmodSync(path, MODE);
}

/** Reports whether a process serves on a path. */
export async function isServed(path: string): Promise<boolean> {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true && (await accepts(path));
}

/** Runs file operations and turns their errors into SOCKET. @throws AgentError */
function asSocketError<T>(path: string, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    throw new AgentError('SOCKET', `${path} cannot be a socket: ${cause}; set --socket`, { cause });
  }
}

/** Reports whether a listener accepts connections there. Also true when its queue is full: it exists and is busy. */
async function accepts(path: string): Promise<boolean> {
  const outcome = Promise.withResolvers<boolean>();
  const probe = connect(path);
  const timer = startTimer(() => outcome.resolve(true), PROBE_MS);
  probe.once('connect', () => outcome.resolve(true));
  probe.once('error', (error: NodeJS.ErrnoException) => outcome.resolve(error.code === 'EAGAIN'));
  try {
    return await outcome.promise;
  } finally {
    timer.cancel();
    probe.destroy();
  }
}
