import { basename } from 'node:path';
import type { HostTree } from '../../../inspection/node/host-tree.ts';
import type { CloudInitFacts, NetworkdFacts, NetworkManagerFacts } from './doctor-facts.ts';
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

/**
 * Folders of configuration. Of files with the same name the first folder wins; of files with the same key the later
 * name wins. @see NetworkManager.conf(5)
 */
const CONF_FOLDERS = ['/etc', '/run', '/usr/lib'].map((folder) => `${folder}/NetworkManager/conf.d`);
const MANAGER_CONF = '/etc/NetworkManager/NetworkManager.conf';
const DEVICES = '/run/NetworkManager/devices';

/** Reads the configuration of NetworkManager and its state of each device. @throws Error when permission is missing */
export function readNetworkManager(tree: HostTree): NetworkManagerFacts {
  const main = tree.text(MANAGER_CONF);
  const files = readConfFiles(tree, CONF_FOLDERS, '.conf');
  const devices = tree
    .names(DEVICES)
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), tree.text(`${DEVICES}/${name}`) ?? ''] as const);
  return {
    hasSystemd: hasSystemd(tree),
    isActive: isUnitActive(tree, 'NetworkManager.service'),
    conf: [
      ...files.filter(({ path }) => !path.startsWith('/etc')),
      ...(main === undefined ? [] : [{ path: MANAGER_CONF, text: main }]),
      ...files.filter(({ path }) => path.startsWith('/etc')),
    ],
    devices: new Map(devices),
  };
}

const CLOUD_INIT_CONF = '/etc/cloud/cloud.cfg';
const DISABLED = '/etc/cloud/cloud-init.disabled';
const HOTPLUG_RULE = '90-cloud-init-hook-hotplug.rules';
/**
 * Folders of the hot-plug rule. New releases write it to HOTPLUG_FOLDERS when hot-plug is turned on; older ones ship it in
 * SHIPPED_FOLDERS and enable a socket.
 */
const HOTPLUG_FOLDERS = ['/etc/udev/rules.d', '/run/udev/rules.d'];
const SHIPPED_FOLDERS = ['/usr/lib/udev/rules.d', '/lib/udev/rules.d'];
const SOCKET_LINK = '/etc/systemd/system/cloud-init.target.wants/cloud-init-hotplugd.socket';

/** Reads installation and configuration of cloud-init. @throws Error when permission is missing */
export function readCloudInit(tree: HostTree): CloudInitFacts {
  const main = tree.text(CLOUD_INIT_CONF);
  const rule = HOTPLUG_FOLDERS.find((folder) => tree.names(folder).includes(HOTPLUG_RULE));
  const shipped = tree.has(SOCKET_LINK)
    ? SHIPPED_FOLDERS.find((folder) => tree.names(folder).includes(HOTPLUG_RULE))
    : undefined;
  const folder = rule ?? shipped;
  return {
    isInstalled: main !== undefined,
    isDisabled: tree.has(DISABLED) || /\bcloud-init=disabled\b/.test(tree.text('/proc/cmdline') ?? ''),
    conf: [
      ...(main === undefined ? [] : [{ path: CLOUD_INIT_CONF, text: main }]),
      ...readConfFiles(tree, ['/etc/cloud/cloud.cfg.d'], '.cfg'),
    ],
    hotplugRule: folder === undefined ? undefined : `${folder}/${HOTPLUG_RULE}`,
  };
}
