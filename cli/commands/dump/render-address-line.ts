import { type AddressMessage, ownAddress } from '../../../netlink/address-message.ts';
import type { NeighMessage } from '../../../netlink/neigh-message.ts';
import { line, pair } from '../../../netlink/render-arguments.ts';
import {
  IFA_F_HOMEADDRESS,
  IFA_F_MANAGETEMPADDR,
  IFA_F_MCAUTOJOIN,
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
} from '../../../netlink/uapi/if-addr.ts';
import {
  NTF_EXT_LEARNED,
  NTF_PROXY,
  NTF_ROUTER,
  NUD_NOARP,
  NUD_PERMANENT,
  NUD_REACHABLE,
} from '../../../netlink/uapi/neighbour.ts';
import type { IpNames } from './ip-names.ts';
import { batchWord } from './render-batch-line.ts';

const FOREVER = 0xffffffff;

/**
 * Renders the `ip -batch` line that creates an address. The line does not set the protocol: iproute2 before 6.3 cannot.
 * @see ip-address(8)
 */
export function renderAddressLine(address: AddressMessage, names: IpNames): string {
  const { flags, cacheinfo } = address;
  const local = ownAddress(address);
  const dev = names.link(address.ifindex);
  const label = address.label === undefined ? undefined : batchWord(address.label);
  const isPeer = address.address !== local && address.address !== '';
  // An address without a time limit may still be deprecated: its preferred lifetime is then 0.
  const isLimited = cacheinfo !== undefined && (cacheinfo.valid !== FOREVER || cacheinfo.preferred !== FOREVER);
  return line(
    'address add',
    isPeer ? [local, 'peer', `${address.address}/${address.prefixlen}`] : `${local}/${address.prefixlen}`,
    pair('broadcast', address.broadcast),
    'dev',
    dev,
    pair('label', label === dev ? undefined : label),
    pair('scope', names.scope(address.scope)),
    pair('metric', address.priority),
    isLimited ? ['valid_lft', lifetime(cacheinfo.valid), 'preferred_lft', lifetime(cacheinfo.preferred)] : [],
    FLAGS.flatMap(([bit, word]) => ((flags & bit) === 0 ? [] : [word])),
  );
}

const FLAGS: readonly (readonly [number, string])[] = [
  [IFA_F_HOMEADDRESS, 'home'],
  [IFA_F_MANAGETEMPADDR, 'mngtmpaddr'],
  [IFA_F_NODAD, 'nodad'],
  [IFA_F_NOPREFIXROUTE, 'noprefixroute'],
  [IFA_F_MCAUTOJOIN, 'autojoin'],
];

function lifetime(seconds: number): string {
  return seconds === FOREVER ? 'forever' : String(seconds);
}

/**
 * Renders the `ip -batch` line that creates a neighbour. One that the kernel is resolving again (DELAY, PROBE) becomes
 * stale.
 * @see ip-neighbour(8)
 */
export function renderNeighLine(neigh: NeighMessage, names: IpNames): string {
  const { flags } = neigh;
  if ((flags & NTF_PROXY) !== 0) return line('neigh add proxy', neigh.dst, 'dev', names.link(neigh.ifindex));
  return line(
    // The kernel may have learned this neighbour before the line runs: `add` would then fail.
    'neigh replace',
    neigh.dst,
    pair('lladdr', neigh.lladdr),
    'dev',
    names.link(neigh.ifindex),
    'nud',
    STATES[neigh.state] ?? 'stale',
    (flags & NTF_ROUTER) === 0 ? [] : ['router'],
    (flags & NTF_EXT_LEARNED) === 0 ? [] : ['extern_learn'],
    pair('protocol', neigh.protocol),
  );
}

const STATES: Readonly<Record<number, string>> = {
  [NUD_PERMANENT]: 'permanent',
  [NUD_NOARP]: 'noarp',
  [NUD_REACHABLE]: 'reachable',
};
