import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { AgentProcess, DhcpClient, InotifyFacts } from './doctor-facts.ts';

const DHCP_CLIENTS = new Set(['dhclient', 'dhcpcd', 'udhcpc']);

/**
 * Returns the DHCP clients among the processes in the network namespace of `netnsPath`. @throws Error EACCES without
 * root
 */
export function readDhcpClients(netnsPath: string): readonly DhcpClient[] {
  const { ino } = statSync(netnsPath);
  return processIds().flatMap((pid): readonly DhcpClient[] => {
    const name = unlessExited(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
    if (name === undefined || !DHCP_CLIENTS.has(name)) return [];
    if (unlessExited(() => statSync(`/proc/${pid}/ns/net`).ino) !== ino) return [];
    const cmdline = unlessExited(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')) ?? [];
    return [{ pid, args: cmdline.filter((arg) => arg !== '') }];
  });
}

/** Counts the inotify instances of root's processes. @throws Error EACCES without root */
export function readInotify(): InotifyFacts {
  const max = Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));
  const used = processIds()
    .filter((pid) => unlessExited(() => statSync(`/proc/${pid}`).uid) === 0)
    .reduce((sum, pid) => sum + inotifyOf(pid), 0);
  return { used, max };
}

function inotifyOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  const names = unlessExited(() => readdirSync(folder)) ?? [];
  return names.filter((name) => targetOf(`${folder}/${name}`) === 'anon_inode:inotify').length;
}

/**
 * Returns the target of a symbolic link; undefined where it cannot be read. Even root may not read some processes:
 * those of another user namespace or protected ones.
 */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function processIds(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Returns undefined where a process or descriptor has ended during the read. @throws Error for other errors */
function unlessExited<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Finds the process that listens on the agent's socket, and reads how it is confined. Undefined when no process of this
 * PID namespace listens there. @throws Error EACCES without root
 */
export function readAgentProcess(socketPath: string): AgentProcess | undefined {
  const pid = findListener(socketPath);
  if (pid === undefined) return undefined;
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]}`);
  return { pid, isInContainer: isInContainer(pid), isPrivileged: ALL_OF.every((bit) => (capabilities >> bit) & 1n) };
}

/** Returns the pid of the process that listens on a unix socket; undefined when none of this PID namespace does. */
export function findListener(socketPath: string): number | undefined {
  const inodes = listeningInodes(readFileSync('/proc/net/unix', 'utf8'), socketPath);
  const targets = new Set<string | undefined>(inodes.map((inode) => `socket:[${inode}]`));
  return targets.size === 0
    ? undefined
    : processIds().find((pid) => filesOf(pid).some((fd) => targets.has(targetOf(fd))));
}

/**
 * Returns the inodes of the sockets that listen on a path. A socket that was renamed into place keeps the name that it
 * was bound to. @see proc_net_unix(5), net/unix/af_unix.c unix_seq_show
 */
export function listeningInodes(table: string, path: string): readonly string[] {
  return table.split('\n').flatMap((line) => {
    const [, , , flags = '', , , inode = '', bound = ''] = line.trim().split(/ +/);
    const isListening = (Number.parseInt(flags, 16) & SO_ACCEPTCON) !== 0;
    return isListening && (bound === path || bound === `${path}.new`) ? [inode] : [];
  });
}

/** @see include/uapi/linux/net.h __SO_ACCEPTCON */
const SO_ACCEPTCON = 0x1_00_00;

/**
 * CAP_SYS_MODULE and CAP_SYS_RAWIO: a privileged container has them, and no container gets them by default.
 * @see include/uapi/linux/capability.h
 */
const ALL_OF = [16n, 17n];

/** Returns the descriptors of a process; none when it has ended or may not be read. */
function filesOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    return [];
  }
}

/** Reports whether a process has another root folder than the host; undefined where either may not be read. */
function isInContainer(pid: number): boolean | undefined {
  try {
    const [own, init] = [statSync(`/proc/${pid}/root/`), statSync('/proc/1/root/')];
    return own.dev !== init.dev || own.ino !== init.ino;
  } catch {
    return undefined;
  }
}
