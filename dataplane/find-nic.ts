import { parseHostVethAlias, parseNicAlias } from './host-veth-name.ts';

/** A link, with the fields that identify the interface of an ENI. */
type NicLink = {
  readonly ifindex: number;
  /** Its present MAC. */
  readonly address?: string | undefined;
  /** The MAC of its hardware; absent where it has none of its own, as links that software made. */
  readonly permAddress?: string | undefined;
  readonly ifalias?: string | undefined;
  readonly kind?: string | undefined;
};

/** Where the interface of an ENI was. */
export type EniPlace = { readonly eniId: string; readonly ifindex: number; readonly ifname: string };

/**
 * Returns the MAC that identifies a link: that of its hardware, which stays the same. A Pod with an exclusive ENI chooses the
 * present MAC and the alias of its interface, and the kernel keeps both when it takes the interface back to the host.
 */
export function permanentMac({ address, permAddress }: Pick<NicLink, 'address' | 'permAddress'>): string | undefined {
  return permAddress ?? address;
}

/** Finds the interface of an ENI by its MAC. */
export function findNic<T extends NicLink>(links: readonly T[], mac: string): T | undefined {
  return nicsByMac(links).get(mac);
}

/**
 * Lists the interfaces of ENIs by MAC. Of several links with a MAC the first of these counts: hardware with a MAC of its own,
 * other hardware, a veth, any other kind (a bridge or VLAN inherits the MAC); then one without our alias; then the lowest
 * index. Host veths of ours are left out.
 */
export function nicsByMac<T extends NicLink>(links: readonly T[]): ReadonlyMap<string, T> {
  const byMac = new Map<string, T>();
  for (const link of links.toSorted((a, b) => rank(a) - rank(b) || a.ifindex - b.ifindex)) {
    const mac = permanentMac(link);
    if (mac !== undefined && !byMac.has(mac) && !isHostVeth(link)) byMac.set(mac, link);
  }
  return byMac;
}

/**
 * Finds the interfaces of ENIs that Pods share, by ENI id. Interfaces that a Pod has, or had, are left out: it chose what they
 * show. An interface without a MAC of its own whose MAC was changed is found by index and name.
 * @param before Where they were, in this boot; the first of an ENI counts.
 */
export function findSharedNics<T extends NicLink & { readonly ifname: string }>(
  links: readonly T[],
  enis: readonly { readonly eniId: string; readonly mac: string }[],
  before: readonly EniPlace[],
): ReadonlyMap<string, T> {
  const candidates = links.filter(
    ({ ifalias = '', permAddress }) => permAddress !== undefined || parseNicAlias(ifalias) === undefined,
  );
  const byMac = nicsByMac(candidates);
  const found = new Map(enis.flatMap(({ eniId, mac }) => (byMac.has(mac) ? [[eniId, byMac.get(mac) as T]] : [])));
  const taken = new Set([...found.values()].map(({ ifindex }) => ifindex));
  const changed = candidates.filter((link) => link.permAddress === undefined && !taken.has(link.ifindex));
  for (const { eniId } of enis) {
    const last = found.has(eniId) ? undefined : before.find((one) => one.eniId === eniId);
    const link = last && changed.find((one) => one.ifindex === last.ifindex && one.ifname === last.ifname);
    if (link !== undefined && !isHostVeth(link)) found.set(eniId, link);
  }
  return found;
}

function rank({ kind, permAddress, ifalias = '' }: NicLink): number {
  const origin = kind !== undefined ? (kind === 'veth' ? 2 : 3) : permAddress === undefined ? 1 : 0;
  return 2 * origin + Number(parseNicAlias(ifalias) !== undefined);
}

/** Whoever has the hardware of an ENI can write our alias on it. */
function isHostVeth({ ifalias, kind, permAddress }: NicLink): boolean {
  const isHardware = kind === undefined && permAddress !== undefined;
  return !isHardware && parseHostVethAlias(ifalias ?? '') !== undefined;
}
