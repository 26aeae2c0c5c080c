import type { AddressMessage, AddressSpec } from '../../netlink/address-message.ts';
import {
  IFA_F_NODAD,
  IFA_F_NOPREFIXROUTE,
  IFA_F_PERMANENT,
  IFA_F_SECONDARY,
  IFA_F_TENTATIVE,
  IFAPROT_KERNEL_LL,
  IFAPROT_KERNEL_LO,
} from '../../netlink/uapi/if-addr.ts';
import { IFF_LOOPBACK, IFF_NOARP, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import {
  RT_SCOPE_HOST,
  RT_SCOPE_LINK,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTN_LOCAL,
  RTN_MULTICAST,
  RTN_UNICAST,
} from '../../netlink/uapi/rtnetlink.ts';
import { dropNeighs } from './neighbours.ts';
import { type Address, emit, type Family, type Link, linksOf, type Netns } from './netns.ts';
import { isWithin, linkLocalOf, networkOf, parsePrefix } from './prefix.ts';
import { Refusal } from './refusal.ts';
import {
  addKernelRoute6,
  addRoutesOf4,
  dropRoutes,
  type Facts4,
  isOwn,
  removeKernelRoute6,
  removeRoutesOf4,
} from './routes.ts';

/** Seconds of a lifetime without an end. */
const FOR_EVER = 0xffff_ffff;
const FOR_EVER_INFO = { preferred: FOR_EVER, valid: FOR_EVER, created: 0, updated: 0 };

/** How long one solicitation of duplicate address detection waits, milliseconds. */
const DAD_MS = 1000;

/** Adds or renews an address. @throws Refusal ENODEV, EEXIST, EINVAL, EACCES */
export function addAddress(netns: Netns, spec: AddressSpec, verb: 'add' | 'replace', by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV');
  if (spec.address.includes(':')) addAddress6(link, spec, verb);
  else addAddress4(link, spec, verb, by);
}

/** Deletes an address. @throws Refusal ENODEV, EADDRNOTAVAIL */
export function deleteAddress(netns: Netns, spec: AddressSpec, by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV');
  const family = spec.address.includes(':') ? 6 : 4;
  const wanted = spec.local ?? spec.address;
  const address = link.addresses[family].find(
    (one) => localOf(one) === wanted && one.prefixlen === spec.prefixlen && one.address === spec.address,
  );
  if (address === undefined) throw new Refusal('EADDRNOTAVAIL');
  if (family === 4) removeAddress4(link, address, by);
  else removeAddress6(link, address);
}

/** Lists addresses: those of IPv4 first, by link. */
export function addressesOf(
  netns: Netns,
  { ifindex, family }: { readonly ifindex?: number; readonly family?: number },
): readonly AddressMessage[] {
  const families: readonly Family[] =
    family === undefined || family === 0 ? [4, 6] : family === AF_INET ? [4] : family === AF_INET6 ? [6] : [];
  return families.flatMap((one) =>
    linksOf(netns)
      .filter((link) => ifindex === undefined || link.ifindex === ifindex)
      .flatMap((link) => link.addresses[one].map((address) => ({ ...address }))),
  );
}

/** Gives the loopback its address, unless it has one. */
export function addLoopback4(link: Link): void {
  settleConf4(link);
  if (link.addresses[4].some(({ address, prefixlen }) => address === '127.0.0.1' && prefixlen === 8)) return;
  const message: Address = {
    ...{ family: AF_INET, prefixlen: 8, scope: RT_SCOPE_HOST, ifindex: link.ifindex, address: '127.0.0.1' },
    ...{ local: '127.0.0.1', label: link.ifname, flags: IFA_F_PERMANENT },
    ...{ cacheinfo: FOR_EVER_INFO, unknown: [] },
  };
  insert4(link, message, 0);
}

/** The labels of IPv4 addresses follow the name of their link; but for the first one they have a number behind it. */
export function renameLabels(link: Link): void {
  for (const [at, address] of link.addresses[4].entries()) {
    const suffix = address.label?.match(/:.*/)?.[0] ?? `:${at + 1}`;
    address.label = at === 0 ? link.ifname : link.ifname.slice(0, 15 - suffix.length) + suffix;
    tell(link, 'new', address, 0);
  }
}

/** A link that comes up has the routes of its IPv4 addresses again. */
export function returnUp4(link: Link): void {
  for (const address of link.addresses[4]) addRoutesOf4(link, factsOf(link, address));
}

/** The same of IPv6, also before there is a carrier. */
export function returnUp6(link: Link): void {
  if (link.conf[6].get('disable_ipv6') === '1') return;
  for (const address of link.addresses[6]) addPrefixRoute6(link, address);
}

/** A link that goes down loses all IPv4 routes but those to the node itself, and its neighbours. */
export function leaveDown4(link: Link): void {
  dropRoutes(link.netns, 4, { isGone: ({ oif, type }) => oif === link.ifindex && type !== RTN_LOCAL, isTold: false });
  dropNeighs(link, [4]);
}

/** IPv6 begins on a link that is up and has a carrier. */
export function begin6(link: Link): void {
  if (link.isReady6 || link.conf[6].get('disable_ipv6') === '1') return;
  link.isReady6 = true;
  const isLoopback = (link.flags & IFF_LOOPBACK) !== 0;
  if (!isLoopback) addKernelRoute6(link, { table: RT_TABLE_LOCAL, type: RTN_MULTICAST, dst: 'ff00::/8' });
  for (const address of [...link.addresses[6]]) settle6(link, address);
  if (isLoopback) addOwn6(link, { address: '::1', prefixlen: 128, scope: RT_SCOPE_HOST, protocol: IFAPROT_KERNEL_LO });
  else addLinkLocal(link);
}

/** Makes the link-local address of a link, where the kernel makes one. */
export function addLinkLocal(link: Link): void {
  if (!link.isReady6 || link.conf[6].get('addr_gen_mode') !== '0') return;
  const address = linkLocalOf(link.address);
  if (link.addresses[6].some((one) => one.address === address)) return;
  addOwn6(link, { address, prefixlen: 64, scope: RT_SCOPE_LINK, protocol: IFAPROT_KERNEL_LL });
}

/** IPv6 ends on a link that goes down, or may not have it: its addresses and routes go. */
export function end6(link: Link): void {
  link.isReady6 = false;
  dropRoutes(link.netns, 6, { isGone: ({ oif }) => oif === link.ifindex, isTold: true });
  dropNeighs(link, [6]);
  for (const address of link.addresses[6].splice(0)) tell(link, 'del', address, 0);
}

/** Removes all addresses of a link that leaves its namespace. */
export function removeAllAddresses(link: Link): void {
  while (link.addresses[4][0] !== undefined) removeAddress4(link, link.addresses[4][0], 0);
  for (const address of link.addresses[6].splice(0)) tell(link, 'del', address, 0);
}

/** With an address asked for, the settings of a link follow those of the links to come no more. */
function settleConf4({ conf }: Link): void {
  for (const name of conf[4].keys()) conf.written.add(name);
}

function addAddress4(link: Link, spec: AddressSpec, verb: 'add' | 'replace', by: number): void {
  settleConf4(link);
  const { local = spec.address, prefixlen } = spec;
  const known = link.addresses[4].find(
    (one) =>
      one.local === local && one.prefixlen === prefixlen && isWithin(spec.address, `${one.address}/${prefixlen}`),
  );
  if (known !== undefined) {
    if (verb === 'add') throw new Refusal('EEXIST');
    known.cacheinfo = spec.cacheinfo ?? FOR_EVER_INFO;
    tell(link, 'new', known, by);
    return;
  }
  const isLoopback = local.startsWith('127.');
  const message: Address = {
    ...{ family: AF_INET, prefixlen, scope: spec.scope ?? (isLoopback ? RT_SCOPE_HOST : 0), ifindex: link.ifindex },
    ...{ address: spec.address, local, label: spec.label ?? link.ifname, cacheinfo: spec.cacheinfo ?? FOR_EVER_INFO },
    ...(spec.broadcast !== undefined && { broadcast: spec.broadcast }),
    ...(spec.protocol !== undefined && { protocol: spec.protocol }),
    ...(spec.priority !== undefined && { priority: spec.priority }),
    ...{ flags: (spec.flags ?? 0) | IFA_F_PERMANENT, unknown: [] },
  };
  insert4(link, message, by);
}

function insert4(link: Link, message: Address, by: number): void {
  const list = link.addresses[4];
  for (const one of list) {
    if (!isOfOnePrefix(one, message)) continue;
    if (one.scope !== message.scope) throw new Refusal('EINVAL', 'Scope mismatch');
    message.flags |= IFA_F_SECONDARY;
  }
  let at = list.length;
  if ((message.flags & IFA_F_SECONDARY) === 0) {
    at = 0;
    for (const [index, one] of list.entries())
      if ((one.flags & IFA_F_SECONDARY) === 0 && message.scope <= one.scope) at = index + 1;
  }
  list.splice(at, 0, message);
  tell(link, 'new', message, by);
  addRoutesOf4(link, factsOf(link, message));
}

/** Of a primary address those of the same prefix go first, and of the last one all routes of the link go. */
function removeAddress4(link: Link, address: Address, by: number): void {
  const list = link.addresses[4];
  const isPrimary = (address.flags & IFA_F_SECONDARY) === 0;
  if (isPrimary) {
    const dependent = list.filter(
      (one) => one !== address && (one.flags & IFA_F_SECONDARY) !== 0 && isOfOnePrefix(one, address),
    );
    for (const one of dependent) removeAddress4(link, one, by);
  }
  const facts = factsOf(link, address);
  list.splice(list.indexOf(address), 1);
  tell(link, 'del', address, by);
  removeRoutesOf4(
    link,
    facts,
    list.some((one) => localOf(one) === facts.local),
  );
  if (!isOwn(link.netns, 4, localOf(address)))
    dropRoutes(link.netns, 4, {
      isGone: ({ prefsrc, table }) => prefsrc === localOf(address) && table === RT_TABLE_MAIN,
      isTold: false,
    });
  if (list.length > 0) return;
  dropRoutes(link.netns, 4, { isGone: ({ oif }) => oif === link.ifindex, isTold: false });
  dropNeighs(link, [4]);
}

function factsOf(link: Link, address: Address): Facts4 {
  const { flags, prefixlen, broadcast } = address;
  const isSecondary = (flags & IFA_F_SECONDARY) !== 0;
  const first = link.addresses[4].find((one) => (one.flags & IFA_F_SECONDARY) === 0 && isOfOnePrefix(one, address));
  return {
    ...{ local: localOf(address), prefixlen, isSecondary, hasPrefixRoute: (flags & IFA_F_NOPREFIXROUTE) === 0 },
    source: localOf(isSecondary && first !== undefined ? first : address),
    ...(broadcast !== undefined && { broadcast }),
  };
}

function isOfOnePrefix(one: Address, other: Address): boolean {
  return one.prefixlen === other.prefixlen && isWithin(other.address, `${one.address}/${one.prefixlen}`);
}

function addAddress6(link: Link, spec: AddressSpec, verb: 'add' | 'replace'): void {
  const { local = spec.address, prefixlen, flags = 0 } = spec;
  if (link.conf[6].get('disable_ipv6') === '1') throw new Refusal('EACCES', 'IPv6 is disabled on this device');
  const known = link.addresses[6].find((one) => localOf(one) === local);
  if (known !== undefined) {
    if (verb === 'add') throw new Refusal('EEXIST', 'address already assigned');
    const kept = IFA_F_NODAD | IFA_F_NOPREFIXROUTE;
    if ((flags & IFA_F_NOPREFIXROUTE) !== 0) removePrefixRoute6(link, known);
    known.flags = (known.flags & ~kept) | (flags & kept);
    if ((link.flags & IFF_UP) !== 0) addPrefixRoute6(link, known);
    known.cacheinfo = spec.cacheinfo ?? FOR_EVER_INFO;
    tell(link, 'new', known, 0);
    return;
  }
  const message: Address = {
    ...{
      family: AF_INET6,
      prefixlen,
      scope: scopeOf(local),
      ifindex: link.ifindex,
      address: spec.address,
      unknown: [],
    },
    ...(local !== spec.address && { local }),
    ...{ flags: flags | IFA_F_PERMANENT | IFA_F_TENTATIVE, cacheinfo: spec.cacheinfo ?? FOR_EVER_INFO },
  };
  insert6(link, message);
}

function addOwn6(link: Link, own: Pick<AddressMessage, 'address' | 'prefixlen' | 'scope' | 'protocol'>): void {
  insert6(link, {
    ...{ family: AF_INET6, ifindex: link.ifindex, unknown: [], cacheinfo: FOR_EVER_INFO, ...own },
    flags: IFA_F_PERMANENT | IFA_F_TENTATIVE,
  });
}

/** Before those of the same scope; those that reach further first. */
function insert6(link: Link, message: Address): void {
  const list = link.addresses[6];
  const at = list.findIndex(({ scope }) => message.scope <= scope);
  list.splice(at < 0 ? list.length : at, 0, message);
  settle6(link, message);
}

/** Makes the routes of an address, and finds out whether others have it, which takes a second. */
function settle6(link: Link, address: Address): void {
  if ((link.flags & IFF_UP) !== 0) addPrefixRoute6(link, address);
  const { conf, netns } = link;
  const accepts = Number(conf[6].get('accept_dad')) >= 1 || Number(netns.all[6].get('accept_dad')) >= 1;
  const transmits = Number(conf[6].get('dad_transmits'));
  const isAsked = accepts && transmits > 0 && (link.flags & (IFF_LOOPBACK | IFF_NOARP)) === 0;
  if (!isAsked || (address.flags & IFA_F_NODAD) !== 0) {
    complete6(link, address);
    return;
  }
  tell(link, 'new', address, 0);
  if (!link.isReady6) return;
  netns.machine.later(transmits * DAD_MS, () => {
    if (link.addresses[6].includes(address)) complete6(link, address);
  });
}

function addPrefixRoute6(link: Link, { address, prefixlen, flags, protocol }: Address): void {
  if ((flags & IFA_F_NOPREFIXROUTE) !== 0 || protocol === IFAPROT_KERNEL_LO) return;
  addKernelRoute6(link, { table: RT_TABLE_MAIN, type: RTN_UNICAST, dst: networkOf(address, prefixlen) });
}

function complete6(link: Link, address: Address): void {
  address.flags &= ~IFA_F_TENTATIVE;
  tell(link, 'new', address, 0);
  addKernelRoute6(link, { table: RT_TABLE_LOCAL, type: RTN_LOCAL, dst: `${localOf(address)}/128` });
}

function removeAddress6(link: Link, address: Address): void {
  const list = link.addresses[6];
  list.splice(list.indexOf(address), 1);
  tell(link, 'del', address, 0);
  removeKernelRoute6(link, { table: RT_TABLE_LOCAL, type: RTN_LOCAL, dst: `${localOf(address)}/128` });
  removePrefixRoute6(link, address);
}

/** The route stays while another address of the link has the prefix. */
function removePrefixRoute6(link: Link, address: Address): void {
  if ((address.flags & IFA_F_NOPREFIXROUTE) !== 0) return;
  const { prefixlen } = address;
  const dst = networkOf(address.address, prefixlen);
  if (link.addresses[6].some((one) => one !== address && one.prefixlen === prefixlen && isWithin(one.address, dst)))
    return;
  removeKernelRoute6(link, { table: RT_TABLE_MAIN, type: RTN_UNICAST, dst });
}

function tell(link: Link, op: 'new' | 'del', address: Address, portid: number): void {
  emit(link.netns, { kind: 'address', op, message: { ...address }, portid });
}

function localOf({ local, address }: Pick<AddressMessage, 'local' | 'address'>): string {
  return local ?? address;
}

function scopeOf(address: string): number {
  const { value } = parsePrefix(address);
  if (value === 1n) return RT_SCOPE_HOST;
  return value >> 118n === 0x3fan ? RT_SCOPE_LINK : 0;
}
