import type { HostTree } from '../../../inspection/node/host-tree.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';

/** A configuration file with its text; '' for a file that a link to /dev/null masks. */
export type ConfFile = { readonly path: string; readonly text: string };

/**
 * Reads the files with a suffix, in the order of their names over all folders. Where two folders have a file of the
 * same name, the earlier folder wins. systemd, sysctl.d and NetworkManager read their files in this way.
 * @see systemd.network(5), sysctl.d(5)
 */
export function readConfFiles(tree: HostTree, folders: readonly string[], suffix: string): readonly ConfFile[] {
  const folderOf = new Map<string, string>();
  for (const folder of folders) {
    for (const name of tree.names(folder)) {
      if (name.endsWith(suffix) && !folderOf.has(name)) folderOf.set(name, folder);
    }
  }
  return [...folderOf]
    .toSorted(([a], [b]) => compareTexts(a, b))
    .map(([name, folder]) => ({ path: `${folder}/${name}`, text: tree.text(`${folder}/${name}`) ?? '' }));
}

/** Returns the folders of systemd's configuration; the first ones win. */
export function systemdFolders(name: string): readonly string[] {
  return ['/etc/systemd', '/run/systemd', '/usr/local/lib/systemd', '/usr/lib/systemd', '/lib/systemd'].map(
    (folder) => `${folder}/${name}`,
  );
}

/** Folders of the control groups of services, for both versions of cgroups. */
const SERVICE_GROUPS = ['/sys/fs/cgroup/system.slice', '/sys/fs/cgroup/systemd/system.slice'];

/**
 * Returns whether a systemd unit runs. systemd keeps a link for each running unit; releases before 239 have no links,
 * so the unit's control group is checked.
 * @see systemd source: unit_export_invocation_id
 */
export function isUnitActive(tree: HostTree, unit: string): boolean {
  if (tree.has('/run/systemd/units')) return tree.names('/run/systemd/units').includes(`invocation:${unit}`);
  return hasSystemd(tree) && SERVICE_GROUPS.some((folder) => tree.has(`${folder}/${unit}`));
}

/** Returns whether systemd is the init of the host. @see sd_booted(3) */
export function hasSystemd(tree: HostTree): boolean {
  return tree.has('/run/systemd/system') || tree.has('/run/systemd/units');
}

const SYSCTL_FOLDERS = [
  '/etc/sysctl.d',
  '/run/sysctl.d',
  '/usr/local/lib/sysctl.d',
  '/usr/lib/sysctl.d',
  '/lib/sysctl.d',
];
const SYSCTL_CONF = '/etc/sysctl.conf';

/**
 * Reads the files that set kernel settings at boot, in the order of precedence, the strongest last.
 * @see sysctl.d(5), sysctl.conf(5)
 */
export function readSysctlFiles(tree: HostTree): readonly ConfFile[] {
  const files = readConfFiles(tree, SYSCTL_FOLDERS, '.conf');
  const old = tree.text(SYSCTL_CONF);
  // `sysctl --system` reads this file last. systemd-sysctl reads it only through the link 99-sysctl.conf, which is
  // among `files` then.
  const isLinked =
    old === undefined || files.some(({ path, text }) => path.endsWith('/99-sysctl.conf') && text === old);
  return isLinked ? files : [...files, { path: SYSCTL_CONF, text: old }];
}
