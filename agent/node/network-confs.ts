import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularText } from '../../runtime/read-regular-file.ts';

/** A network configuration of the machine. */
export type NetworkConf = { readonly path: string; readonly text: string };

/** Reads the network configurations of a folder, in the order of their names. One that cannot be read is empty; a folder that is missing has none. */
export function readNetworkConfs(cniConfDir: string): readonly NetworkConf[] {
  return unlessUnreadable([], () => readdirSync(cniConfDir))
    .filter((name) => /\.(conf|conflist|json)$/.test(name))
    .toSorted()
    .map((name) => join(cniConfDir, name))
    .map((path) => ({ path, text: unlessUnreadable('', () => readRegularText(path, MAX_CONF_BYTES)) }));
}

/** Largest network configuration that is read, bytes. */
const MAX_CONF_BYTES = 1024 * 1024;

function unlessUnreadable<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    // One half-written file must not hide the others.
    return otherwise;
  }
}

/** Returns the paths of those that chain cilium-cni. Pure. */
export function ciliumConflists(confs: readonly NetworkConf[]): readonly string[] {
  return confs.filter(({ text }) => /"type"\s*:\s*"cilium-cni"/.test(text)).map(({ path }) => path);
}
