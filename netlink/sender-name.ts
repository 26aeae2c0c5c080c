import { readFileSync } from 'node:fs';

/**
 * Names the process that sent a netlink request, by the port number that notifications of its change carry: that of a process's first
 * socket is its pid in the PID namespace of the reader's /proc.
 * @returns 'the kernel', 'networkd (pid 512)', or 'pid 512, which has ended'; undefined for further sockets of a process
 * @see netlink(7) nl_pid
 */
export function senderName(portid: number, proc = '/proc'): string | undefined {
  if (portid === 0) return 'the kernel';
  if (portid > MAX_PID) return undefined;
  try {
    return `${readFileSync(`${proc}/${portid}/comm`, 'utf8').trimEnd()} (pid ${portid})`;
  } catch {
    return `pid ${portid}, which has ended`;
  }
}

/** Largest pid. @see proc_sys_kernel(5) pid_max */
const MAX_PID = 4_194_304;
