import type { HostTree } from './host-tree.ts';

/** A configuration file and what is in it; empty for one that is masked by a link to /dev/null. */
export type ConfFile = { readonly path: string; readonly text: string };

/**
 * Reads the files of one kind in the order of their names over all folders; where two folders have one of a name, the
 * earlier folder's counts. Which is how systemd, sysctl.d and NetworkManager read theirs.
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
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, folder]) => ({ path: `${folder}/${name}`, text: tree.text(`${folder}/${name}`) ?? '' }));
}

/** Folders of systemd's configuration, the first ones win. */
export function systemdFolders(name: string): readonly string[] {
  return ['/etc/systemd', '/run/systemd', '/usr/local/lib/systemd', '/usr/lib/systemd', '/lib/systemd'].map(
    (folder) => `${folder}/${name}`,
  );
}

/** Where the control groups of services are, by version. */
const SERVICE_GROUPS = ['/sys/fs/cgroup/system.slice', '/sys/fs/cgroup/systemd/system.slice'];

/**
 * Tells whether systemd has a unit running, by the link that it keeps for each; releases before 239 have no links, and a
 * control group.
 * @see systemd source: unit_export_invocation_id
 */
export function isUnitActive(tree: HostTree, unit: string): boolean {
  if (tree.has('/run/systemd/units')) return tree.names('/run/systemd/units').includes(`invocation:${unit}`);
  return hasSystemd(tree) && SERVICE_GROUPS.some((folder) => tree.has(`${folder}/${unit}`));
}

/** Tells whether systemd runs the host of this tree. @see sd_booted(3) */
export function hasSystemd(tree: HostTree): boolean {
  return tree.has('/run/systemd/system') || tree.has('/run/systemd/units');
}
