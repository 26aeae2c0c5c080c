import type { EniPrimaryAddress } from '../journal/supply.ts';
import type { HostView } from '../node/node-network.ts';

/** An ENI of a supply, as far as its link is looked for. */
type NamedEni = { readonly mac: string; readonly primary: readonly EniPrimaryAddress[] };

/** An address that we added to a link. */
export type AddedHere = { readonly ifindex: number; readonly prefix: string };

type Link = HostView['links'][number];

/**
 * Finds out why no link with an ENI's MAC may become that ENI: each one is a software link, or has a use already.
 * Undefined when a link may, or when there is none. A link that has the ENI's own address as we set it is in use as that
 * ENI already, and stays so whatever others did to it since. A veth counts as a NIC while it is no port of a bridge.
 */
export function whyForeignMac(
  { mac, primary }: NamedEni,
  { links, addresses }: HostView,
  added: readonly AddedHere[],
): string | undefined {
  const named = links.filter(({ address }) => address === mac);
  const ownIps = new Set(primary.map(({ ip }) => ip));
  const addedHere = new Set(added.map(({ ifindex, prefix }) => `${ifindex} ${prefix}`));
  const isAdded = (found: Address) => addedHere.has(`${found.ifindex} ${textOf(found)}/${found.prefixlen}`);
  const reasons = named.map((link) => {
    const ofLink = addresses.filter(({ ifindex, scope }) => ifindex === link.ifindex && scope !== RT_SCOPE_LINK);
    const software = whySoftware(link);
    if (software !== undefined) return software;
    if (ofLink.some((found) => ownIps.has(textOf(found)) && isHostPrefix(found))) return undefined;
    const isOurs = (found: Address) => ownIps.has(textOf(found)) || isAdded(found) || isFromNetwork(found);
    const foreign = ofLink.find((found) => !isOurs(found));
    if (foreign !== undefined) return `${link.ifname}, which has the address ${textOf(foreign)}`;
    return link.kind === 'veth' && (link.master ?? 0) !== 0 ? `${link.ifname}, a port of another link` : undefined;
  });
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** Names the kind of a link that no NIC has; hardware has none. */
function whySoftware({ ifname, kind }: Link): string | undefined {
  return kind === undefined || kind === 'veth' ? undefined : `${ifname}, of kind ${kind}`;
}

type Address = HostView['addresses'][number];

function textOf({ local, address }: Address): string {
  return local ?? address;
}

function isHostPrefix({ family, prefixlen }: Address): boolean {
  return prefixlen === (family === AF_INET6 ? 128 : 32);
}

/** Whether the kernel made an IPv6 address of a router advertisement: any NIC in a subnet with IPv6 gets one. */
function isFromNetwork({ family, flags }: Address): boolean {
  return family === AF_INET6 && ((flags ?? 0) & IFA_F_PERMANENT) === 0;
}

const AF_INET6 = 10;
/** Scope of the address that the kernel adds with the link. @see uapi/linux/rtnetlink.h */
const RT_SCOPE_LINK = 253;
/** @see uapi/linux/if_addr.h */
const IFA_F_PERMANENT = 0x80;
