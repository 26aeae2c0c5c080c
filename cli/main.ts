import { accessSync, constants, fstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { startTimer, systemClock } from '../runtime/clock.ts';
import type { CommandContext } from './command/command.ts';
import { EXIT } from './command/exit-code.ts';
import { usesColor } from './output/color.ts';
import { openStream } from './output/open-stream.ts';
import { runProgram } from './program/run-program.ts';

// The ops CLI. Only the size of a terminal is read from process.stdout, and console is not used: the first use of
// either costs 3.5 ms.

const { env } = process;
const stop = new AbortController();
/** Exit status of a process that SIGINT ended. @see bash(1) EXIT STATUS */
const INTERRUPTED = 130;
/**
 * Time between an interrupt and the forced exit. A command that checks the abort signal ends by itself before; one that
 * does not check it is ended by the exit.
 */
const GRACE_MS = 2_000;

/**
 * Major number of /dev/null, /dev/zero and /dev/full. @see Documentation/admin-guide/devices.txt, character device 1
 */
const MEMORY_DEVICES = 1;

process.on('SIGINT', requestExit);
process.on('SIGTERM', requestExit);

runProgram(process.argv.slice(2), {
  env,
  clock: systemClock,
  signal: stop.signal,
  isRoot: process.geteuid?.() === 0,
  ...(isTerminal(0) ? { keys: listenToKeys } : {}),
  hostRoot: findHostRoot,
  kubeconfig: findKubeconfig,
  openStream: (name, color) => {
    const fd = name === 'stdout' ? 1 : 2;
    const isOnTerminal = isTerminal(fd);
    return openStream({
      fd,
      isTerminal: isOnTerminal,
      isColored: usesColor(color, isOnTerminal, env),
      size: () => (isOnTerminal ? process[name] : undefined),
      columnsVariable: env['COLUMNS'],
      onClosed: () => stop.abort(new Error('the reader of the output has closed it')),
    });
  },
}).then(
  (code) => process.exit(code),
  (error: unknown) => {
    if (stop.signal.aborted && error === stop.signal.reason) process.exit(INTERRUPTED);
    const stack = error instanceof Error ? error.stack : String(error);
    process.stderr.write(`tke-eni: internal error; please report it with this:\n${stack}\n`);
    process.exit(EXIT.failed);
  },
);

/**
 * Returns whether a descriptor is a terminal. It calls isatty(3) only for character devices: node:tty loads node:net
 * and streams, which takes 3 ms, and a pipe or a file does not need them.
 */
function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev >> 8 === MEMORY_DEVICES) return false;
  } catch {
    // The parent process has closed this descriptor.
    return false;
  }
  return process.getBuiltinModule('node:tty').isatty(fd);
}

function requestExit(): void {
  if (stop.signal.aborted) process.exit(INTERRUPTED);
  stop.abort(new Error('interrupted'));
  startTimer(() => process.exit(INTERRUPTED), GRACE_MS).unref();
}

/**
 * Reads single keys in raw mode and returns the function that stops it. In raw mode the terminal does not turn Ctrl-C
 * into SIGINT, so this function handles Ctrl-C itself.
 */
function listenToKeys(listener: (key: string) => void): () => void {
  const { stdin } = process;
  const onData = (data: Buffer) => {
    const key = data.toString('utf8');
    if (key === '\u0003') requestExit();
    else listener(key);
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  // The terminal is gone (EIO).
  stdin.on('error', requestExit);
  stdin.resume();
  return () => {
    stdin.off('data', onData);
    stdin.off('error', requestExit);
    stdin.setRawMode(false);
    stdin.pause();
  };
}

/** Returns the root of the host's file system; /proc/1/root in a container that shares the host's PID namespace. */
function findHostRoot(): string {
  try {
    const host = statSync('/proc/1/root/');
    const ownRoot = statSync('/');
    accessSync('/proc/1/root/', constants.R_OK | constants.X_OK);
    return host.dev === ownRoot.dev && host.ino === ownRoot.ino ? '/' : '/proc/1/root';
  } catch {
    // Not root, or no /proc: only the own root can be read.
    return '/';
  }
}

/** Returns the kubeconfig that kubectl would use; '' stands for the Pod's own service account. */
function findKubeconfig(): CommandContext['global']['kubeconfig'] {
  const configured = env['KUBECONFIG'];
  if (configured !== undefined && configured !== '') return configured;
  const usual = join(env['HOME'] ?? '/root', '.kube', 'config');
  try {
    accessSync(usual, constants.R_OK);
    return usual;
  } catch {
    return '';
  }
}
