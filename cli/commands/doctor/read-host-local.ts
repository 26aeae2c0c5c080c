import type { HostTree } from '../../../inspection/node/host-tree.ts';
import type { HostLocalAddress } from './doctor-facts.ts';

/** Folder in which host-local records addresses of the product's network. @see containernetworking/plugins host-local */
const FOLDER = '/var/lib/cni/networks/tke-bridge';

/** Most files that are read. A node has at most 256 Pods of a block. */
const MAX_FILES = 1_024;

/** Reads which addresses host-local has given to Pods of the product's network tke-bridge. @throws Error when permission is missing */
export function readHostLocal(tree: HostTree): readonly HostLocalAddress[] {
  const addresses = tree.names(FOLDER).filter((name) => /^\d+\.\d+\.\d+\.\d+$/.test(name));
  return addresses.slice(0, MAX_FILES).map((ip) => {
    const path = `${FOLDER}/${ip}`;
    const [containerId = ''] = (tree.text(path) ?? '').split(/\r?\n/);
    return { ip, containerId: containerId.trim().slice(0, MAX_ID), path };
  });
}

/** Longest container id that is shown. */
const MAX_ID = 128;
