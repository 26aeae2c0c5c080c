import { readRegularText } from '../../runtime/read-regular-file.ts';
import { apiServerOf, nameserversOf } from './node-peers.ts';

const RESOLV_CONF = '/etc/resolv.conf';
/** Longest file that is read, bytes: three name servers are used. */
const MAX_BYTES = 64 * 1024;

/**
 * Reads which servers the node needs, by address: name servers, and the API server where `--master` names it by an
 * address. A file that cannot be read names none.
 */
export function readServers(master: string): ReadonlyMap<string, string> {
  return new Map([...nameserversOf(readResolvConf()), ...apiServerOf(master)]);
}

function readResolvConf(): string {
  try {
    return readRegularText(RESOLV_CONF, MAX_BYTES);
  } catch {
    return '';
  }
}
