import { accessSync, constants, fstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../runtime/clock.ts';
import type { CommandContext } from './command.ts';
import { EXIT } from './exit-code.ts';
import { wantsColor } from './output/color.ts';
import { openStream } from './output/open-stream.ts';
import { runProgram } from './program/run-program.ts';

// The ops CLI. process.stdout and console stay untouched but for a terminal's size: their first use costs 3.5 ms.

const { env } = process;
const stop = new AbortController();
/** What a shell calls an end by SIGINT. @see bash(1) EXIT STATUS */
const INTERRUPTED = 130;
/** A command that follows something ends at once; one that does not look at the signal is ended. */
const GRACE_MS = 2_000;

/** /dev/null and the like. @see Documentation/admin-guide/devices.txt, character device 1 */
const MEMORY_DEVICES = 1;

process.on('SIGINT', leaveSoon);
process.on('SIGTERM', leaveSoon);

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
      isColored: wantsColor(color, isOnTerminal, env),
      size: () => (isOnTerminal ? process[name] : undefined),
      columnsWanted: env['COLUMNS'],
      onClosed: () => stop.abort(new Error('nobody reads the output any more')),
    });
  },
}).then(
  (code) => process.exit(code),
  (error: unknown) => {
    if (stop.signal.aborted && error === stop.signal.reason) process.exit(INTERRUPTED);
    const stack = error instanceof Error ? error.stack : String(error);
    process.stderr.write(`tke-eni: a fault of ours; please report it with this:\n${stack}\n`);
    process.exit(EXIT.failed);
  },
);

/** Asks isatty(3) only where it can be one: node:tty brings node:net and streams, 3 ms that a pipe need not wait for. */
function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev >> 8 === MEMORY_DEVICES) return false;
  } catch {
    // Closed by whoever started us.
    return false;
  }
  return process.getBuiltinModule('node:tty').isatty(fd);
}

function leaveSoon(): void {
  if (stop.signal.aborted) process.exit(INTERRUPTED);
  stop.abort(new Error('interrupted'));
  setTimeout(() => process.exit(INTERRUPTED), GRACE_MS).unref();
}

/** Reads keys as they are typed. In this mode the terminal makes no signal of Ctrl-C; so we do. */
function listenToKeys(listener: (key: string) => void): () => void {
  const { stdin } = process;
  const onData = (data: Buffer) => {
    const key = data.toString('utf8');
    if (key === '\u0003') leaveSoon();
    else listener(key);
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  stdin.resume();
  return () => {
    stdin.off('data', onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}

/** Finds the host's root from inside a container that shares the host's PID namespace. */
function findHostRoot(): string {
  try {
    const host = statSync('/proc/1/root/');
    const own = statSync('/');
    accessSync('/proc/1/root/', constants.R_OK | constants.X_OK);
    return host.dev === own.dev && host.ino === own.ino ? '/' : '/proc/1/root';
  } catch {
    // Not root, or no /proc: then there is no other root to read.
    return '/';
  }
}

/** Finds what kubectl would use; '' stands for the Pod's own service account. */
function findKubeconfig(): CommandContext['global']['kubeconfig'] {
  const given = env['KUBECONFIG'];
  if (given !== undefined && given !== '') return given;
  const usual = join(env['HOME'] ?? '/root', '.kube', 'config');
  try {
    accessSync(usual, constants.R_OK);
    return usual;
  } catch {
    return '';
  }
}
