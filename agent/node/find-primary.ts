import { permanentMac } from '../../dataplane/find-nic.ts';
import { canonicalAddress, familyOf } from '../../dataplane/ip-prefix.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_LOOPBACK } from '../../netlink/uapi/if-link.ts';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import type { HostView, PrimaryInterface } from './node-network.ts';

/** A primary interface that was found before. */
export type KnownPrimary = {
  /** Absent when it was found before the machine booted: indexes are given again. */
  readonly ifindex?: number;
  readonly addresses: readonly string[];
};

/** What tells the primary interface from the others, the strongest first. */
export type PrimaryEvidence = {
  /** `--primary-interface`: no other link is taken. */
  readonly configured?: string | undefined;
  /** The addresses of type InternalIP of the Node object. */
  readonly nodeIps: readonly string[];
  readonly known?: KnownPrimary | undefined;
};

/**
 * Finds the primary interface. In this order: the link that is configured; the one that has an InternalIP of the Node;
 * the one that has an address of the primary interface as it was found before, or is that link; the device of the
 * default route, IPv4 first, with the lowest metric. A default route is the last resort: other programs and DHCP make
 * some by any link. But for the first two, links of ENIs do not count. Undefined when there is none.
 */
export function findPrimary(
  view: HostView,
  { configured, nodeIps, known }: PrimaryEvidence,
  eniMacs: ReadonlySet<string>,
): PrimaryInterface | undefined {
  const { links } = view;
  if (configured !== undefined) return primaryOf(view, (link) => link.ifname === configured);
  const usable = links.filter((link) => link.kind !== 'dummy' && (link.flags & IFF_LOOPBACK) === 0);
  const candidates = usable.filter((link) => !eniMacs.has(permanentMac(link) ?? ''));
  // Of several links with one address that of before stays.
  const inOrder = (among: readonly LinkMessage[]) =>
    among.toSorted((a, b) => Number(b.ifindex === known?.ifindex) - Number(a.ifindex === known?.ifindex));
  const found =
    withAddress(view, inOrder(usable), nodeIps) ??
    withAddress(view, inOrder(candidates), known?.addresses ?? []) ??
    candidates.find(({ ifindex }) => ifindex === known?.ifindex)?.ifindex ??
    defaultOif(view, new Set(candidates.map(({ ifindex }) => ifindex)));
  return primaryOf(view, ({ ifindex }) => ifindex === found);
}

function primaryOf(
  { links, addresses }: HostView,
  isPrimary: (link: LinkMessage) => boolean,
): PrimaryInterface | undefined {
  const link = links.find(isPrimary);
  if (link === undefined) return undefined;
  return {
    ifindex: link.ifindex,
    ifname: link.ifname,
    addresses: addresses.filter(({ ifindex }) => ifindex === link.ifindex).map(ownAddress),
  };
}

/** Returns the first of these links with one of the addresses; that of the first address, if links have several. */
function withAddress(
  { addresses }: HostView,
  links: readonly LinkMessage[],
  wanted: readonly string[],
): number | undefined {
  const found = wanted
    .map(canonicalAddress)
    .filter((ip) => !ip.startsWith('fe80:'))
    .toSorted((a, b) => familyOf(a) - familyOf(b))
    .flatMap((ip) => {
      const owners = new Set(addresses.filter((one) => ownAddress(one) === ip).map(({ ifindex }) => ifindex));
      return links.filter(({ ifindex }) => owners.has(ifindex));
    });
  return found[0]?.ifindex;
}

function defaultOif({ mainRoutes }: HostView, allowed: ReadonlySet<number>): number | undefined {
  const defaults = mainRoutes
    .filter(({ dst }) => dst === undefined || dst.endsWith('/0'))
    .flatMap((route) => {
      const oif = route.oif ?? route.multipath?.[0]?.oif;
      return oif === undefined || !allowed.has(oif) ? [] : [{ oif, family: route.family, metric: route.priority ?? 0 }];
    });
  return defaults.toSorted(
    (a, b) => Number(b.family === AF_INET) - Number(a.family === AF_INET) || a.metric - b.metric,
  )[0]?.oif;
}
