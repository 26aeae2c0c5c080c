import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../../../sim/support/child.ts';
import type { TempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** One system call of a recording. */
type RecordedCall = {
  readonly threadId: number;
  readonly name: string;
  /** What the first argument's descriptor leads to: a path, `NETLINK:[ROUTE:1234]`, `UNIX-STREAM:[…]`; empty without one. */
  readonly target: string;
};

/** A place in a process's life, told from outside: as some thread enters its n-th call of that name since the start of the watch. */
export type KillPoint = {
  readonly name: string;
  /** From 1. */
  readonly nth: number;
  /** For the log: where the call went when it was recorded. */
  readonly target: string;
};

/** A process that will be killed at a point, if it comes there. */
type ArmedKill = {
  /** Ends the watch. Returns true when the point was reached and the process killed. */
  end(): Promise<boolean>;
};

/** System calls by which a process changes anything outside itself. @see syscalls(2) */
const CHANGING = new Set([
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'mkdir', 'mkdirat', 'link', 'linkat', 'symlinkat'],
  ...['ftruncate', 'truncate', 'fallocate', 'fsync', 'fdatasync', 'setns', 'chmod', 'fchmod', 'fchmodat', 'fchown'],
]);

const KILL_RECORD_MS = 100;

/** Calls by which a thread only wakes another, or waits. */
const WAKING = /^anon_inode:|^pipe:/;

/** Records all system calls of a process and its threads while `during` runs. */
export async function recordCalls(
  pid: number,
  dir: TempDir,
  during: () => Promise<unknown>,
): Promise<readonly RecordedCall[]> {
  const file = join(dir.path, 'calls.strace');
  // -yy names what a descriptor leads to; without it a write to the journal looks like one to an event counter.
  const strace = await attach(pid, ['-yy', '-o', file]);
  try {
    await during();
  } finally {
    await strace.stop('SIGTERM');
  }
  return readFileSync(file, 'utf8').split('\n').flatMap(parseCall);
}

/** Attaches to a running process, threads included, and kills it as some thread enters the call. */
export async function armKill(pid: number, point: KillPoint, dir: TempDir): Promise<ArmedKill> {
  const file = join(dir.path, 'kill.strace');
  const inject = `${point.name}:signal=KILL:when=${point.nth}`;
  const strace = await attach(pid, ['-o', file, '-e', `trace=${point.name}`, '-e', `inject=${inject}`]);
  const isKilled = (): boolean => existsSync(file) && readFileSync(file, 'utf8').includes('+++ killed by SIGKILL +++');
  return {
    end: async () => {
      // What was called for has been answered, so a kill that comes has come; only its record may be late.
      await waitUntil(() => isKilled() || !strace.isRunning, { what: 'a kill', timeoutMs: KILL_RECORD_MS }).catch(
        () => {},
      );
      // Told to end while its tracees are dying, strace waits for them forever.
      await strace.stop(isKilled() ? 'SIGKILL' : 'SIGTERM');
      return isKilled();
    },
  };
}

/** The points of a recording at which something is about to change: what went before is done, what comes is not. */
export function changingPoints(calls: readonly RecordedCall[]): readonly KillPoint[] {
  return everyPoint(calls).filter(({ name, target }) => CHANGING.has(name) && !WAKING.test(target));
}

/** Every point of a recording. `when` counts by thread, so two threads at the same count are one point. */
export function everyPoint(calls: readonly RecordedCall[]): readonly KillPoint[] {
  const counts = new Map<string, number>();
  const points = new Map<string, KillPoint>();
  for (const { threadId, name, target } of calls) {
    const nth = (counts.get(`${threadId} ${name}`) ?? 0) + 1;
    counts.set(`${threadId} ${name}`, nth);
    const key = `${name} ${nth}`;
    if (!points.has(key) || WAKING.test(points.get(key)?.target ?? '')) points.set(key, { name, nth, target });
  }
  return [...points.values()];
}

/** Puts points in an order in which any first part is spread over the whole: for a run that time may cut short. */
export function spread<T>(points: readonly T[]): readonly T[] {
  const bits = Math.ceil(Math.log2(Math.max(points.length, 2)));
  const reversed = (index: number): number =>
    Number.parseInt(index.toString(2).padStart(bits, '0').split('').reverse().join(''), 2);
  return points
    .map((point, index) => ({ point, rank: reversed(index) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ point }) => point);
}

/**
 * A thread that ends between the list and strace's look ends strace with it: then once more. Where the process is gone, its
 * point has come before strace said that it was attached.
 */
async function attach(pid: number, args: readonly string[]): Promise<Child> {
  const tried = await attachOnce(pid, args);
  if (tried.isAttached || !existsSync(`/proc/${pid}`)) return tried.strace;
  const again = await attachOnce(pid, args);
  if (!again.isAttached) throw new Error(`strace cannot attach to ${pid}: ${again.strace.stderr}`);
  return again.strace;
}

async function attachOnce(
  pid: number,
  args: readonly string[],
): Promise<{ readonly strace: Child; readonly isAttached: boolean }> {
  // Thread by thread and without -f, which would follow child processes (nft) too, and kill these.
  const threads = readdirSync(`/proc/${pid}/task`);
  const strace = new Child(['strace', ...threads.flatMap((thread) => ['-p', thread]), ...args]);
  const attached = (): number => strace.stderr.split(' attached').length - 1;
  await waitUntil(() => attached() >= threads.length || !strace.isRunning, {
    what: `strace attached to the ${threads.length} threads of ${pid}`,
    explain: () => strace.stderr,
  });
  // A point may come at once, in what the process does by itself; strace ends with it.
  return { strace, isAttached: attached() > 0 };
}

/** Reads a line of a record: `1234 write(5</run/x>, "…", 3) = 3`, or the same `<unfinished ...>`; a `resumed` line is the end of one that was counted. */
export function parseCall(line: string): readonly RecordedCall[] {
  const match = /^(\d+)\s+([a-z0-9_]+)\((?:\d+<(.*?)>[,)])?/.exec(line);
  const [, threadId, name] = match ?? [];
  if (threadId === undefined || name === undefined) return [];
  return [{ threadId: Number(threadId), name, target: match?.[3] ?? '' }];
}
