import { familyOfMessage } from '../../../dataplane/address-family.ts';
import type { NetnsFacts } from '../../../inspection/node/node-facts.ts';
import { type AddressMessage, ownAddress } from '../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { NeighMessage } from '../../../netlink/neigh-message.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { IFAPROT_KERNEL_LL, IFAPROT_KERNEL_LO } from '../../../netlink/uapi/if-addr.ts';
import { IFF_LOOPBACK, IFF_NOARP } from '../../../netlink/uapi/if-link.ts';
import {
  NTF_PROXY,
  NUD_DELAY,
  NUD_NOARP,
  NUD_PERMANENT,
  NUD_PROBE,
  NUD_REACHABLE,
  NUD_STALE,
} from '../../../netlink/uapi/neighbour.ts';
import { RTN_MULTICAST, RTPROT_KERNEL } from '../../../netlink/uapi/rtnetlink.ts';

/** The objects that a script has to create, without those that the kernel creates by itself. */
export type ScriptFacts = {
  readonly links: readonly LinkMessage[];
  readonly addresses: readonly AddressMessage[];
  readonly routes: readonly RouteMessage[];
  readonly rules: readonly RuleMessage[];
  readonly neighs: readonly NeighMessage[];
  /** Interfaces, by index, on which the kernel created its IPv6 link-local address. */
  readonly withLinkLocal: ReadonlySet<number>;
  /** All selected rules, default rules included. */
  readonly allRules: readonly RuleMessage[];
  /** All addresses of the namespace, those of the kernel included. */
  readonly allAddresses: readonly AddressMessage[];
};

/** The selected objects, and all links and addresses of the namespace, by which the kernel's objects are recognized. */
export type ScriptInput = Omit<NetnsFacts, 'sysctls' | 'traffic'> & {
  readonly unfiltered: Pick<NetnsFacts, 'links' | 'addresses'>;
};

/**
 * Leaves out what the kernel creates by itself: the routes of an address, the link-local address of a link, default
 * rules.
 */
export function withoutKernelMade(facts: ScriptInput): ScriptFacts {
  const links = new Map(facts.unfiltered.links.map((link) => [link.ifindex, link]));
  const isKernelMade = (address: AddressMessage): boolean => isKernelAddress(address, links.get(address.ifindex));
  return {
    links: facts.links,
    addresses: facts.addresses.filter((address) => !isKernelMade(address)),
    routes: facts.routes.filter((route) => route.protocol !== RTPROT_KERNEL && !isMulticastOfLink(route)),
    rules: facts.rules.filter((rule) => !isDefaultRule(rule)),
    neighs: facts.neighs.filter((neigh) => isReplayed(neigh, links.get(neigh.ifindex))),
    withLinkLocal: new Set(facts.unfiltered.addresses.filter(isKernelMade).map(({ ifindex }) => ifindex)),
    allRules: facts.rules,
    allAddresses: facts.unfiltered.addresses,
  };
}

/** Reports whether a route is the route to ff00::/8 that the kernel adds for each interface. */
function isMulticastOfLink({ type, protocol, dst }: RouteMessage): boolean {
  return type === RTN_MULTICAST && protocol === RTPROT_KERNEL && dst === 'ff00::/8';
}

/** Priorities of the default rules, which each new namespace has. */
export const DEFAULT_PRIORITIES: Readonly<Record<4 | 6, readonly number[]>> = { 4: [0, 32766, 32767], 6: [0, 32766] };

/** Reports whether a rule is one of the default rules that each new namespace has. */
function isDefaultRule(rule: RuleMessage): boolean {
  return rule.protocol === RTPROT_KERNEL && DEFAULT_PRIORITIES[familyOfMessage(rule)].includes(rule.priority);
}

/**
 * Reports whether the kernel created an address. Kernels before 5.18 do not report that; then the form of the address
 * decides.
 */
function isKernelAddress(address: AddressMessage, link: LinkMessage | undefined): boolean {
  const { protocol, prefixlen } = address;
  if (protocol === IFAPROT_KERNEL_LL || protocol === IFAPROT_KERNEL_LO) return true;
  const isLoopback = link !== undefined && (link.flags & IFF_LOOPBACK) !== 0;
  if (isLoopback) return ownAddress(address) === '127.0.0.1' || address.address === '::1';
  return protocol === undefined && prefixlen === 64 && address.address === eui64(link?.address);
}

/** Returns the link-local address that the kernel derives from a MAC. @see RFC 4291 appendix A */
function eui64(mac: string | undefined): string | undefined {
  const bytes = (mac ?? '').split(':').map((byte) => Number.parseInt(byte, 16));
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes;
  if (bytes.length !== 6) return undefined;
  const groups = [((a ^ 2) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f];
  return `fe80::${groups.map((group) => group.toString(16)).join(':')}`;
}

const REPLAYED_STATES = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;

function isReplayed({ state, flags, dst, lladdr }: NeighMessage, link: LinkMessage | undefined): boolean {
  if ((flags & NTF_PROXY) !== 0) return true;
  const isResolved = (state & REPLAYED_STATES) !== 0 && lladdr !== undefined;
  const isOfKernel = state === NUD_NOARP && (isMulticast(dst) || (link !== undefined && isWithoutArp(link.flags)));
  return isResolved && !isOfKernel;
}

function isWithoutArp(flags: number): boolean {
  return (flags & (IFF_NOARP | IFF_LOOPBACK)) !== 0;
}

function isMulticast(dst: string): boolean {
  return dst.includes(':') ? /^ff/i.test(dst) : /^(22[4-9]|23\d|255)\./.test(dst);
}
