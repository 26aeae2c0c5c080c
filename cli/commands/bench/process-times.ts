import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Clock ticks per second: the unit of times in /proc, the same on all architectures. @see proc(5), sysconf(3) */
const TICKS_PER_SECOND = 100;

/** Returns this process's id in the PID namespace that /proc shows. */
export function ownPid(): number {
  return Number(readlinkSync('/proc/self'));
}

/** Returns whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    readFileSync(`/proc/${pid}/stat`);
    return true;
  } catch {
    return false;
  }
}

/** Returns the CPU time of a process, user and system, in milliseconds in steps of 10; undefined when it has ended. */
export function cpuMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may contain blanks and parentheses. Fields 14 and 15 are the 12th and 13th after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Returns the pid of the process that listens on a unix socket; undefined when it is not found in /proc. */
export function listenerOf(socketPath: string): number | undefined {
  const inodes = socketInodes(socketPath);
  const names = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const folder = `/proc/${pid}/fd`;
      if (readdirSync(folder).some((fd) => names.has(readlinkSync(`${folder}/${fd}`)))) return Number(pid);
    } catch {
      // The process has ended, or has closed a descriptor, since the folder was listed.
    }
  }
  return undefined;
}

/**
 * Returns the inodes of all sockets with this path. A listening socket and its accepted connections keep the path that
 * the socket was bound to. The agent binds `<path>.new` and renames it afterwards, so both names are accepted. All
 * these sockets belong to the same process. @see proc_net(5)
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
