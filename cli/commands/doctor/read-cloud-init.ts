import type { HostTree } from '../../../inspection/node/host-tree.ts';
import type { CloudInitFacts } from './doctor-facts.ts';
import { readConfFiles } from './read-conf-files.ts';

const MAIN = '/etc/cloud/cloud.cfg';
const DISABLED = '/etc/cloud/cloud-init.disabled';
const RULE = '90-cloud-init-hook-hotplug.rules';
/**
 * Folders of the hot-plug rule. New releases write it to RULE_FOLDERS when hot-plug is turned on; older ones ship it in
 * SHIPPED_FOLDERS and enable a socket.
 */
const RULE_FOLDERS = ['/etc/udev/rules.d', '/run/udev/rules.d'];
const SHIPPED_FOLDERS = ['/usr/lib/udev/rules.d', '/lib/udev/rules.d'];
const SOCKET_LINK = '/etc/systemd/system/cloud-init.target.wants/cloud-init-hotplugd.socket';

/** Reads installation and configuration of cloud-init. @throws Error when permission is missing */
export function readCloudInit(tree: HostTree): CloudInitFacts {
  const main = tree.text(MAIN);
  const rule = RULE_FOLDERS.find((folder) => tree.names(folder).includes(RULE));
  const shipped = tree.has(SOCKET_LINK)
    ? SHIPPED_FOLDERS.find((folder) => tree.names(folder).includes(RULE))
    : undefined;
  const folder = rule ?? shipped;
  return {
    isInstalled: main !== undefined,
    isDisabled: tree.has(DISABLED) || /\bcloud-init=disabled\b/.test(tree.text('/proc/cmdline') ?? ''),
    conf: [
      ...(main === undefined ? [] : [{ path: MAIN, text: main }]),
      ...readConfFiles(tree, ['/etc/cloud/cloud.cfg.d'], '.cfg'),
    ],
    hotplugRule: folder === undefined ? undefined : `${folder}/${RULE}`,
  };
}
