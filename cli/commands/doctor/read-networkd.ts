import { basename } from 'node:path';
import type { HostTree } from '../../../inspection/node/host-tree.ts';
import type { NetworkdFacts } from './doctor-facts.ts';
import { type ConfFile, hasSystemd, isUnitActive, readConfFiles, systemdFolders } from './read-conf-files.ts';

/**
 * Reads state and configuration of systemd-networkd, and udev's link files. @throws Error when permission is missing
 */
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
    networks: withDropIns(tree, '.network'),
    links: withDropIns(tree, '.link'),
    drivers: readDrivers(tree),
  };
}

/** Reads files with their drop-ins. The text of drop-ins follows the text of the file, so that their values win. */
function withDropIns(tree: HostTree, suffix: string): readonly ConfFile[] {
  const folders = systemdFolders('network');
  const extended = new Set(folders.flatMap((folder) => tree.names(folder)).filter((name) => name.endsWith('.d')));
  return readConfFiles(tree, folders, suffix).map(({ path, text }) => {
    const name = `${basename(path)}.d`;
    const dropIns = extended.has(name) ? readConfFiles(tree, systemdFolders(`network/${name}`), '.conf') : [];
    return { path, text: [text, ...dropIns.map((file) => file.text)].join('\n') };
  });
}

/** Reads the drivers of NICs; virtual interfaces have no device and no driver. */
function readDrivers(tree: HostTree): ReadonlyMap<string, string> {
  const drivers = tree.names('/sys/class/net').flatMap((ifname) => {
    const driver = tree.linkName(`/sys/class/net/${ifname}/device/driver`);
    return driver === undefined ? [] : [[ifname, driver] as const];
  });
  return new Map(drivers);
}

/** Returns the version of systemd from the file name of the library that its programs share. */
function systemdVersion(tree: HostTree): number | undefined {
  const triplets = tree.names('/usr/lib').filter((name) => name.endsWith('-linux-gnu'));
  const folders = ['/usr/lib/systemd', '/lib/systemd', ...triplets.map((name) => `/usr/lib/${name}/systemd`)];
  const names = [...folders, '/usr/lib64/systemd'].flatMap((folder) => tree.names(folder));
  const versions = names.flatMap((name) => /^libsystemd-shared-(\d+)/.exec(name)?.[1] ?? []).map(Number);
  return versions.length === 0 ? undefined : Math.max(...versions);
}
