import type { HostState } from '../../dataplane/desired.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { isShared, linkRestoration, sysctlRestoration } from '../node/decide-restoration.ts';
import type { AddedAddress, FoundEntry, FoundState, FoundSysctl } from '../node/found-state.ts';
import type { HostLink } from '../node/host-link.ts';

/** Reads what of the host's kernel decides. */
export type LeftLinksView = {
  readonly links: readonly HostLink[];
  /** Addresses on a link, as `address/length`. */
  addressesOn(ifindex: number): readonly string[];
  /** Undefined when there is no such setting. */
  sysctl(path: readonly string[]): string | undefined;
  /** Whether TCP connections that live can be marked, so that they go on without the setting that they need. */
  canKeepConnections(): boolean;
};

/** What undoes what we set; and the records that are over. */
type LeftLinks = { readonly operations: readonly Operation[]; readonly over: readonly FoundEntry[] };

/**
 * Decides what is undone because no plan needs it any more: addresses that we added, settings of links that are no ENI now
 * (the supply named them wrongly, or the ENI is leaving), and settings of the node for a choice of before. Reads the kernel for such records only.
 * @param inUse Indexes of links that the agent uses and no plan has: the primary interface, idle whole ENIs.
 */
export function restoreLeftLinks(
  found: FoundState,
  desired: HostState,
  inUse: ReadonlySet<number>,
  view: LeftLinksView,
): LeftLinks {
  const operations: Operation[] = [];
  const over: FoundEntry[] = [];
  const restore = (entry: FoundEntry, operation: Operation | undefined): void => {
    if (operation === undefined) over.push(entry);
    else operations.push(operation);
  };
  const restoreSetting = (entry: FoundSysctl, now: string | undefined): void => {
    const operation = now === undefined ? undefined : sysctlRestoration(entry, now);
    if (operation?.keepsConnections !== true || view.canKeepConnections()) restore(entry, operation);
  };
  const byIndex = new Map(view.links.map((link) => [link.ifindex, link]));
  const byName = new Map(view.links.map((link) => [link.ifname, link]));
  const planned = new Set(desired.addresses.map(({ ifindex, prefix }) => `${ifindex} ${prefix}`));
  for (const entry of found.addresses ?? []) {
    if (planned.has(`${entry.ifindex} ${entry.prefix}`) || inUse.has(entry.ifindex)) continue;
    const isHere = byIndex.get(entry.ifindex)?.ifname === entry.ifname;
    restore(entry, isHere ? addressRemoval(entry, view) : undefined);
  }
  const used = usedLinks(desired, inUse);
  for (const entry of found.sysctls) {
    if (isLeftOfNode(entry, desired)) {
      restoreSetting(entry, view.sysctl(entry.path));
      continue;
    }
    const scope = scopeOf(entry);
    const link = scope === undefined ? undefined : byName.get(scope);
    if (scope === undefined || link?.ifname === 'lo' || (link !== undefined && used.has(link.ifindex))) continue;
    if (desired.sysctls.some(({ key }) => key.path.includes(scope))) continue;
    restoreSetting(entry, link === undefined ? undefined : view.sysctl(entry.path));
  }
  for (const entry of found.links) {
    const link = byIndex.get(entry.ifindex);
    if (link?.ifname !== entry.ifname || used.has(link.ifindex)) continue;
    restore(entry, linkRestoration(entry, { isUp: link.isUp === true, mtu: link.mtu }));
  }
  return { operations, over };
}

function addressRemoval(address: AddedAddress, view: LeftLinksView): Operation | undefined {
  return view.addressesOn(address.ifindex).includes(address.prefix) ? { kind: 'delete-address', address } : undefined;
}

function usedLinks(desired: HostState, inUse: ReadonlySet<number>): ReadonlySet<number> {
  return new Set([...inUse, ...desired.links.map(({ ifindex }) => ifindex)]);
}

/**
 * Reports whether a setting that is of no link is in no plan any more, as that of connection tracking when the fast path is
 * off. Forwarding and those of all links stay: packets of others may rely on them.
 */
function isLeftOfNode(setting: FoundSysctl, desired: HostState): boolean {
  const { path } = setting;
  const name = path.join('/');
  return path[2] !== 'conf' && !isShared(setting) && !desired.sysctls.some(({ key }) => key.path.join('/') === name);
}

/** Returns the link of a setting in net/ipv4/conf or net/ipv6/conf; undefined for a setting of all links or of none. */
function scopeOf({ path }: FoundSysctl): string | undefined {
  const [, , group, scope] = path;
  return group !== 'conf' || scope === 'all' || scope === 'default' ? undefined : scope;
}
