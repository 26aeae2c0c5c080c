import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Names the process that sent a netlink request, by the port number that notifications of its change carry. That of a process's first
 * socket is its pid, as its own PID namespace numbers it: a process is named only if it has the socket of that port.
 * @returns 'the kernel', 'networkd (pid 512)', or 'a process that has ended, or one of a container (pid 512)'; undefined for further
 *   sockets of a process
 * @see netlink(7) nl_pid, proc_pid_net(5)
 */
export function senderName(portid: number, proc = '/proc'): string | undefined {
  if (portid === 0) return 'the kernel';
  if (portid > MAX_PID) return undefined;
  try {
    const inode = inodeOf(readFileSync(`${proc}/${portid}/net/netlink`, 'utf8'), portid);
    if (inode !== undefined && hasSocket(`${proc}/${portid}/fd`, inode))
      return `${readFileSync(`${proc}/${portid}/comm`, 'utf8').trimEnd()} (pid ${portid})`;
  } catch {
    // It has ended, or is another user's.
  }
  return `a process that has ended, or one of a container (pid ${portid})`;
}

/** Largest pid. @see proc_sys_kernel(5) pid_max */
const MAX_PID = 4_194_304;
/** Most open files of a process that are looked through: milliseconds. */
const MAX_FILES = 4_096;

/** Columns: sk, protocol, port, groups, rmem, wmem, dump, locks, drops, inode. Protocol 0 is rtnetlink. */
function inodeOf(table: string, portid: number): string | undefined {
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/));
  return rows.find(([, protocol, port]) => protocol === '0' && port === `${portid}`)?.[9];
}

function hasSocket(folder: string, inode: string): boolean {
  return readdirSync(folder)
    .slice(0, MAX_FILES)
    .some((file) => readlinkSync(`${folder}/${file}`) === `socket:[${inode}]`);
}
