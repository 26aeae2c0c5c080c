import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';
import type { HostView } from './node-network.ts';

/**
 * Lists the next hops of the node's routes in the main table, without our own routes: a Pod with such an address would
 * take what the node sends to others. By address, with what it is.
 */
export function nextHopsOf(routes: HostView['mainRoutes']): ReadonlyMap<string, string> {
  return new Map(
    routes
      .filter(({ protocol }) => protocol !== RTPROT_TKE_ENI)
      .flatMap(({ dst, gateway, via, multipath = [] }) =>
        [gateway, via, ...multipath.flatMap((hop) => [hop.gateway, hop.via])].flatMap((address) =>
          address === undefined ? [] : [[address, `the next hop of the node's route ${dst ?? 'default'}`] as const],
        ),
      ),
  );
}

/** Lists the name servers of a resolv.conf, by address. @see resolv.conf(5) */
export function nameserversOf(resolvConf: string): ReadonlyMap<string, string> {
  const addresses = resolvConf.split('\n').flatMap((line) => /^nameserver\s+([0-9a-fA-F.:]+)/.exec(line)?.[1] ?? []);
  return new Map(addresses.map((address) => [address, 'a name server of the node'] as const));
}

/** Returns the API server as a peer where its URL names it by an address; else nothing. */
export function apiServerOf(url: string): ReadonlyMap<string, string> {
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : '';
  return new Map(/^[0-9.]+$|:/.test(host) ? [[host, 'the API server'] as const] : []);
}

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
