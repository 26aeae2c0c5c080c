import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { DhcpClient, InotifyFacts } from './doctor-facts.ts';

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
