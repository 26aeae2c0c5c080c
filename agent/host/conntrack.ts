import { spawn } from 'node:child_process';
import { messageOf } from '../../runtime/error-text.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Conntrack } from '../state/ports.ts';

/** Options of `openConntrack`. */
type ConntrackOptions = {
  /** Path of the network namespace to work in; absent: that of the process. */
  readonly netnsPath?: string;
};

const TIMEOUT_MS = 5_000;
/** Most characters that are kept of what the tool says went wrong. */
const MAX_STDERR = 4_096;
/** The fields of an entry that may hold an address; each is one sweep of the table. @see conntrack(8) */
const SIDES = ['--orig-src', '--orig-dst', '--reply-src', '--reply-dst'] as const;
/** A sweep stops at an entry that expires meanwhile; the next one deletes what it had not reached yet. */
const MAX_SWEEPS = 5;
const LOST_ENTRY = "such conntrack doesn't exist";

/**
 * Deletes connection tracking entries with the `conntrack` tool. Where it is missing a warning is logged and nothing is
 * deleted: an address that is reused early may then receive packets of its last owner's connections, as without any
 * flush.
 */
export function openConntrack(log: Logger, { netnsPath }: ConntrackOptions = {}): Conntrack {
  const enter = netnsPath === undefined ? [] : ['nsenter', `--net=${netnsPath}`];
  const flush = async (ips: readonly string[], failed: (left: { ip: string; side: string; fault: string }) => void) => {
    for (const ip of ips) {
      // One after the other: an entry matches two of them, and a sweep stops at an entry that another has just deleted.
      for (const side of SIDES) {
        const fault = await remove([...enter, 'conntrack', '-D', '-f', ip.includes(':') ? 'ipv6' : 'ipv4', side, ip]);
        if (fault !== undefined) failed({ ip, side, fault });
      }
    }
  };
  return {
    flush: (ips) => flush(ips, (left) => log.warn('conntrack entries not flushed', left)),
    flushOrThrow: (ips) =>
      flush(ips, ({ ip, side, fault }) => {
        throw new Error(`conntrack ${side} ${ip}: ${fault}`);
      }),
  };
}

/** Deletes the entries; returns what went wrong. */
async function remove(command: readonly string[]): Promise<string | undefined> {
  let fault: string | undefined;
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    fault = await run(command);
    if (fault === undefined || !fault.includes(LOST_ENTRY)) return fault;
  }
  return fault;
}

async function run([file = '', ...args]: readonly string[]): Promise<string | undefined> {
  const over = Promise.withResolvers<string | undefined>();
  try {
    // The tool prints every entry that it deletes, and a Pod may have had a hundred thousand: its output is dropped.
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: TIMEOUT_MS });
    let stderr = '';
    child.once('error', (error) => over.resolve(error.message));
    // Without a free file descriptor there is no pipe.
    child.stderr?.on('error', () => {});
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(0, MAX_STDERR);
    });
    child.once('close', (code, signal) => {
      // "0 flow entries have been deleted" has exit code 1 as well, and is success.
      const isDone = code === 0 || (code === 1 && stderr.includes(' 0 flow entries'));
      over.resolve(isDone ? undefined : `${stderr.trim() || 'it said nothing'} (${signal ?? `exit code ${code}`})`);
    });
  } catch (error) {
    over.resolve(messageOf(error));
  }
  return await over.promise;
}
