import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { AgentProcess } from './doctor-facts.ts';

/**
 * Finds the process that listens on the agent's socket, and reads how it is confined. Undefined when no process of this
 * PID namespace listens there. @throws Error EACCES without root
 */
export function readAgentProcess(socketPath: string): AgentProcess | undefined {
  const inodes = listeningInodes(readFileSync('/proc/net/unix', 'utf8'), socketPath);
  const pid = inodes.length === 0 ? undefined : findOwner(new Set(inodes.map((inode) => `socket:[${inode}]`)));
  if (pid === undefined) return undefined;
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]}`);
  return { pid, isInContainer: isInContainer(pid), isPrivileged: ALL_OF.every((bit) => (capabilities >> bit) & 1n) };
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

function findOwner(targets: ReadonlySet<string>): number | undefined {
  const pids = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  return pids.find((pid) => filesOf(pid).some((fd) => targets.has(targetOf(fd))));
}

/** Returns the descriptors of a process; none when it has ended or may not be read. */
function filesOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    return [];
  }
}

function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Tells whether a process has another root folder than the host; undefined where either may not be read. */
function isInContainer(pid: number): boolean | undefined {
  try {
    const [own, init] = [statSync(`/proc/${pid}/root/`), statSync('/proc/1/root/')];
    return own.dev !== init.dev || own.ino !== init.ino;
  } catch {
    return undefined;
  }
}
