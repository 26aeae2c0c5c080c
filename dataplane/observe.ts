import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { NUD_PERMANENT } from '../netlink/uapi/neighbour.ts';
import { AF_INET, AF_INET6 } from '../netlink/uapi/netlink.ts';
import type { Sysctl } from '../sysctl/sysctl.ts';
import { disableIpv6, rpFilter, type SysctlKey, sysctlName } from '../sysctl/sysctl-key.ts';
import { withoutCommonUnknown } from './beyond-plan.ts';
import { type HostState, type NeighState, type NetState, routeKey } from './desired.ts';
import { flowtableReplaceCommands, splitFlowtableListing } from './fast-path/flowtable.ts';
import { openFilterReader } from './fast-path/observe-filters.ts';
import type { Kernel } from './kernel.ts';
import { compareTables, nftDeleteCommands } from './nft-replace.ts';
import { FLOWTABLE_TABLE, RTPROT_TKE_ENI, TABLE_MAIN } from './numbers.ts';
import type { ObservedFilters, ObservedFlowtable, ObservedHost, ObservedNft, ObservedRoute } from './observed.ts';
import { toAddress, toLink, toRoute, toRule } from './to-state.ts';

/** What a namespace is observed by: the kernel, or what was read of it. */
type ReadableNetns = {
  readonly rtnetlink: {
    readonly [Kind in 'link' | 'address' | 'route' | 'rule' | 'neigh']: Pick<Rtnetlink[Kind], 'list'>;
  };
  readonly sysctl: Pick<Sysctl, 'find'>;
};

/**
 * Reads everything that `desired` mentions, everything else of ours, and foreign objects in our tables. Changes
 * nothing.
 * @throws NetlinkError, SysctlError, NftError
 */
export async function observeHost(kernel: Kernel, desired: HostState): Promise<ObservedHost> {
  // nft first: it takes milliseconds, and the rest should be as recent as possible when operations follow.
  const nft = desired.nft === undefined ? {} : await observeNft(kernel, desired.nft.text);
  const flowtable = desired.nft === undefined ? undefined : await observeFlowtable(kernel, desired.flowtable?.text);
  return {
    ...observeNetns(kernel, desired, openFilterReader(kernel).read),
    nft: { ...nft, ...(flowtable && { flowtable }) },
  };
}

/**
 * As `observeHost` without nftables, for a Pod's namespace or when only routing matters. Synchronous.
 * @param readFilters Reads the filters of the links that it gets, names by index; absent: they are not read.
 */
export function observeNetns(
  kernel: ReadableNetns,
  desired: NetState,
  readFilters?: (names: ReadonlyMap<number, string>) => ObservedFilters,
): ObservedHost {
  const { rtnetlink, sysctl } = kernel;
  const families = sysctl.find(disableIpv6('all')) === undefined ? [AF_INET] : [AF_INET, AF_INET6];
  const links = rtnetlink.link.list().map(toLink);
  const names = new Map(links.map((link) => [link.ifindex, link.ifname]));
  const nameOf = (ifindex: number) => names.get(ifindex) ?? `if${ifindex}`;
  const isDesired = isAmong(new Set(desired.links.map((link) => link.ifindex)));
  const bridges = desired.links.filter(({ kind }) => kind === 'bridge');
  const bridgeNames = new Set(bridges.map(({ ifname }) => ifname));
  const bridgeIndexes = new Set<number | undefined>(bridges.map(({ ifindex }) => ifindex));
  return {
    links: links.filter(
      // What has the name of a bridge is in its way; ports of a bridge may be of others.
      (link) => isDesired(link) || bridgeNames.has(link.ifname) || bridgeIndexes.has(link.master),
    ),
    addresses: families
      .flatMap((family) => rtnetlink.address.list({ family }))
      .filter(isAmong(new Set([...desired.links, ...desired.addresses].map((item) => item.ifindex))))
      .map((message) => toAddress(message, nameOf)),
    routes: families.flatMap((family) => observeRoutes(kernel, desired, family, nameOf)),
    rules: families.flatMap((family) => withoutCommonUnknown(rtnetlink.rule.list({ family }))).map(toRule),
    neighs: observeNeighs(kernel, desired, nameOf),
    sysctls: observeSysctls(
      kernel,
      // What is larger counts: that of the interface, or this one.
      [...desired.sysctls.map(({ key }) => key), rpFilter('all')],
    ),
    nft: {},
    ...(readFilters && { filters: readFilters(names) }),
  };
}

/** Compares the project's nftables table with the one that `text` defines. */
export async function observeNft(kernel: Pick<Kernel, 'nft'>, text: string): Promise<ObservedNft> {
  const [listing, wanted] = await Promise.all([kernel.nft.read(), kernel.nft.canonical(text)]);
  if (listing === undefined) return {};
  const restore = nftDeleteCommands() + listing;
  const { isSame, former } = compareTables(listing, wanted);
  return { restore, ...(isSame ? { text } : former && { former }) };
}

/**
 * Compares the table of the flowtable with the one that `wanted` defines, if any is; undefined when there is none.
 * @throws NftError
 */
export async function observeFlowtable(
  { nft }: Pick<Kernel, 'nft'>,
  wanted: string | undefined,
): Promise<ObservedFlowtable | undefined> {
  const listing = await nft.read(FLOWTABLE_TABLE);
  if (listing === undefined) return undefined;
  const { text, devices } = splitFlowtableListing(listing);
  const isCurrent = wanted !== undefined && text === (await nft.canonical(wanted, FLOWTABLE_TABLE));
  return { isCurrent, devices, restore: flowtableReplaceCommands(text, devices) };
}

function observeRoutes(
  { rtnetlink }: Pick<ReadableNetns, 'rtnetlink'>,
  desired: NetState,
  family: number,
  nameOf: (ifindex: number) => string,
): readonly ObservedRoute[] {
  const desiredKeys = new Set(desired.routes.map(routeKey));
  const tables = new Set([...desired.routes, ...desired.rules].map(({ table }) => table));
  // Ours in any table; foreign ones in our tables; in main, which may be large, only those with the same key as one of
  // ours.
  const ours = withoutCommonUnknown(rtnetlink.route.list({ family, protocol: RTPROT_TKE_ENI })).map((message) =>
    toRoute(message, nameOf),
  );
  const foreign = [...tables].flatMap((table) =>
    rtnetlink.route
      .list({ family, table })
      .filter((message) => message.protocol !== RTPROT_TKE_ENI)
      .map((message) => toRoute(message, nameOf))
      .filter((route) => table !== TABLE_MAIN || desiredKeys.has(routeKey(route))),
  );
  return [...ours, ...foreign];
}

function observeNeighs(
  { rtnetlink }: Pick<ReadableNetns, 'rtnetlink'>,
  desired: NetState,
  nameOf: (ifindex: number) => string,
): readonly NeighState[] {
  const ifindexes = new Set(desired.neighs.map((neigh) => neigh.ifindex));
  return [...ifindexes].flatMap((ifindex) =>
    rtnetlink.neigh
      .list({ ifindex })
      .filter(({ state }) => (state & NUD_PERMANENT) !== 0)
      .map(({ dst = '', lladdr = '' }) => ({ ifindex, ifname: nameOf(ifindex), dst, lladdr })),
  );
}

function observeSysctls(
  { sysctl }: Pick<ReadableNetns, 'sysctl'>,
  keys: readonly SysctlKey[],
): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const key of keys) {
    const value = sysctl.find(key);
    if (value !== undefined) values.set(sysctlName(key), value);
  }
  return values;
}

function isAmong(ifindexes: ReadonlySet<number>): (item: { readonly ifindex: number }) => boolean {
  return ({ ifindex }) => ifindexes.has(ifindex);
}
