import type { HostTree } from '../../../inspection/node/host-tree.ts';
import { type ConfFile, readConfFiles } from './read-conf-files.ts';

const FOLDERS = ['/etc/sysctl.d', '/run/sysctl.d', '/usr/local/lib/sysctl.d', '/usr/lib/sysctl.d', '/lib/sysctl.d'];
const OLD = '/etc/sysctl.conf';

/**
 * Reads the files that set kernel settings at boot, in the order of precedence, the strongest last.
 * @see sysctl.d(5), sysctl.conf(5)
 */
export function readSysctlFiles(tree: HostTree): readonly ConfFile[] {
  const files = readConfFiles(tree, FOLDERS, '.conf');
  const old = tree.text(OLD);
  // `sysctl --system` reads this file last. systemd-sysctl reads it only through the link 99-sysctl.conf, which is
  // among `files` then.
  const isLinked =
    old === undefined || files.some(({ path, text }) => path.endsWith('/99-sysctl.conf') && text === old);
  return isLinked ? files : [...files, { path: OLD, text: old }];
}
