import type { AddressMessage } from '../netlink/address-message.ts';
import type { LinkMessage } from '../netlink/link-message.ts';
import type { RouteMessage } from '../netlink/route-message.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK } from '../netlink/uapi/rtnetlink.ts';

/** What a Pod's network namespace has of the signs of a sandbox. */
export type InsideSigns = {
  readonly links: readonly Pick<LinkMessage, 'ifindex' | 'ifname' | 'kind' | 'link'>[];
  readonly addresses: readonly Pick<AddressMessage, 'ifindex' | 'scope'>[];
  readonly routes: readonly Pick<RouteMessage, 'family' | 'oif'>[];
  /** Links of which a packet socket receives every packet. */
  readonly packetLinks: readonly number[];
};

/** Handlers of runtimes whose sandboxes have a network stack of their own, as RuntimeClasses name them. */
const SANDBOXED = /runsc|gvisor|kata/i;
/** Handlers of runtimes whose containers use the namespace itself. */
const NATIVE: ReadonlySet<string> = new Set(['runc', 'crun']);
/** The names that Kata gives its devices. */
const KATA_TAP = /^tap\d+_kata$/;

/** Reports whether a link is a device between a Pod's interface and the virtual machine of Kata. */
export function isKataTap({ ifname }: Pick<LinkMessage, 'ifname'>): boolean {
  return KATA_TAP.test(ifname);
}

/**
 * Reports whether a sandbox with a network stack of its own took a Pod's addresses and routes out of the namespace (gVisor; Kata
 * with a macvtap). That they are gone proves no sandbox: `ip address flush` takes the routes as well. The runtime's
 * handler says it, or what a sandbox needs for the packets: a packet socket, or a device above the link.
 * @param ifindexes links to which we gave addresses
 * @param handler as the CRI names it; empty or absent when it is not known, or for the runtime's default
 */
export function isTaken(signs: InsideSigns, ifindexes: readonly number[], handler = ''): boolean {
  if (NATIVE.has(handler) || !isEmptied(signs, ifindexes)) return false;
  const ours = new Set<number | undefined>(ifindexes);
  return (
    SANDBOXED.test(handler) ||
    signs.packetLinks.some((ifindex) => ours.has(ifindex)) ||
    signs.links.some((link) => isKataTap(link) || (link.kind === 'macvtap' && ours.has(link.link)))
  );
}

/**
 * Reports whether links are there without addresses and IPv4 routes. Link-local addresses are the kernel's own; a default route
 * of IPv6 outlives the address.
 */
export function isEmptied({ links, addresses, routes }: InsideSigns, ifindexes: readonly number[]): boolean {
  const ours = new Set<number | undefined>(ifindexes);
  return (
    ifindexes.length > 0 &&
    ifindexes.every((ifindex) => links.some((link) => link.ifindex === ifindex)) &&
    !addresses.some(({ ifindex, scope }) => ours.has(ifindex) && scope !== RT_SCOPE_LINK) &&
    !routes.some(({ family, oif }) => family === AF_INET && ours.has(oif))
  );
}
