import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Clock ticks a second, as the kernel tells times to programs on all architectures. @see proc(5), sysconf(3) */
const TICKS_PER_SECOND = 100;

/** Returns this process's id in the PID namespace that /proc shows. */
export function ownPid(): number {
  return Number(readlinkSync('/proc/self'));
}

/** Tells whether a process lives. */
export function isAlive(pid: number): boolean {
  try {
    readFileSync(`/proc/${pid}/stat`);
    return true;
  } catch {
    return false;
  }
}

/** Returns CPU time of a process, user and system, in milliseconds, to 10; undefined when it is gone. */
export function cpuMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold blanks and parentheses; fields 14 and 15 are the 12th and 13th after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Finds the process that has a unix socket of this path open for others; undefined when /proc does not tell. */
export function listenerOf(socketPath: string): number | undefined {
  const inodes = socketInodes(socketPath);
  const names = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const folder = `/proc/${pid}/fd`;
      if (readdirSync(folder).some((fd) => names.has(readlinkSync(`${folder}/${fd}`)))) return Number(pid);
    } catch {
      // It ended, or closed a descriptor, while we looked.
    }
  }
  return undefined;
}

/**
 * A listening socket and its accepted connections bear the path that it was bound to; the agent renames its own
 * afterwards. All are of the same process. @see proc_net(5)
 */
function socketInodes(socketPath: string): readonly string[] {
  try {
    return readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[7] === socketPath || fields[7] === `${socketPath}.new`)
      .flatMap((fields) => fields[6] ?? []);
  } catch {
    return [];
  }
}
