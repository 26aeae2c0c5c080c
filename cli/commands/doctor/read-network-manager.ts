import type { HostTree } from '../../../inspection/node/host-tree.ts';
import type { NetworkManagerFacts } from './doctor-facts.ts';
import { hasSystemd, isUnitActive, readConfFiles } from './read-conf-files.ts';

/**
 * Folders of configuration. Of files with the same name the first folder wins; of files with the same key the later
 * name wins. @see NetworkManager.conf(5)
 */
const CONF_FOLDERS = ['/etc', '/run', '/usr/lib'].map((folder) => `${folder}/NetworkManager/conf.d`);
const MAIN = '/etc/NetworkManager/NetworkManager.conf';
const DEVICES = '/run/NetworkManager/devices';

/** Reads the configuration of NetworkManager and its state of each device. @throws Error when permission is missing */
export function readNetworkManager(tree: HostTree): NetworkManagerFacts {
  const main = tree.text(MAIN);
  const devices = tree
    .names(DEVICES)
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), tree.text(`${DEVICES}/${name}`) ?? ''] as const);
  return {
    hasSystemd: hasSystemd(tree),
    isActive: isUnitActive(tree, 'NetworkManager.service'),
    conf: [
      ...readConfFiles(tree, CONF_FOLDERS, '.conf').filter(({ path }) => !path.startsWith('/etc')),
      ...(main === undefined ? [] : [{ path: MAIN, text: main }]),
      ...readConfFiles(tree, CONF_FOLDERS, '.conf').filter(({ path }) => path.startsWith('/etc')),
    ],
    devices: new Map(devices),
  };
}
