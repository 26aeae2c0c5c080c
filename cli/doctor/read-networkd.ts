import type { NetworkdFacts } from './doctor-facts.ts';
import type { HostTree } from './host-tree.ts';
import { hasSystemd, isUnitActive, readConfFiles, systemdFolders } from './read-conf-files.ts';

/** Reads what there is of systemd-networkd and of udev's link files. @throws Error when it may not be read */
export function readNetworkd(tree: HostTree): NetworkdFacts {
  const main = systemdFolders('networkd.conf').flatMap((path) => {
    const text = tree.text(path);
    return text === undefined ? [] : [{ path, text }];
  });
  return {
    hasSystemd: hasSystemd(tree),
    isActive: isUnitActive(tree, 'systemd-networkd.service'),
    version: systemdVersion(tree),
    conf: [...main.slice(0, 1), ...readConfFiles(tree, systemdFolders('networkd.conf.d'), '.conf')],
    networks: readConfFiles(tree, systemdFolders('network'), '.network'),
    links: readConfFiles(tree, systemdFolders('network'), '.link'),
  };
}

/** By the name of the library that systemd's programs share: it bears the version. */
function systemdVersion(tree: HostTree): number | undefined {
  const triplets = tree.names('/usr/lib').filter((name) => name.endsWith('-linux-gnu'));
  const folders = ['/usr/lib/systemd', '/lib/systemd', ...triplets.map((name) => `/usr/lib/${name}/systemd`)];
  const names = [...folders, '/usr/lib64/systemd'].flatMap((folder) => tree.names(folder));
  const versions = names.flatMap((name) => /^libsystemd-shared-(\d+)/.exec(name)?.[1] ?? []).map(Number);
  return versions.length === 0 ? undefined : Math.max(...versions);
}
