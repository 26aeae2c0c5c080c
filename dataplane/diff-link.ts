import type { HostState, LinkState } from './desired.ts';
import type { ObservedHost, ObservedLink } from './observed.ts';
import type { LinkProperties, Operation } from './operation.ts';

/**
 * Compares the selected properties of links. A link stays out of a bridge that is missing.
 */
export function linkOperations(
  desired: HostState,
  observed: ObservedHost,
  select: (link: LinkState) => LinkProperties,
  missing: ReadonlySet<number> = new Set(),
): readonly Operation[] {
  const present = new Map(observed.links.map((link) => [link.ifindex, link]));
  return desired.links.flatMap((link): readonly Operation[] => {
    const found = present.get(link.ifindex);
    if (found === undefined) return [];
    const { master, ...rest } = select(link);
    const wanted = master === undefined || missing.has(master) ? rest : { ...rest, master };
    const { change, before } = changedProperties(wanted, found);
    if (Object.keys(change).length === 0) return [];
    return [{ kind: 'set-link', ifindex: link.ifindex, ifname: link.ifname, change, before }];
  });
}

/** Selects what is set before routes are: a link must be up, and its own, before a packet passes. */
export function withoutGroup({ up, mtu, mac, arp, master, ifalias }: LinkState): LinkProperties {
  return {
    ...(up && { up }),
    ...(mtu !== undefined && { mtu }),
    ...(mac !== undefined && { mac }),
    ...(arp && { arp }),
    ...(master !== undefined && { master }),
    ...(ifalias !== undefined && { ifalias }),
  };
}

function changedProperties(
  desired: LinkProperties,
  found: ObservedLink,
): { readonly change: LinkProperties; readonly before: LinkProperties } {
  const { isUp, isNoArp, isPromisc, master = 0, mtu, group, mac, ifalias = '' } = found;
  const present: LinkProperties = {
    up: isUp,
    mtu,
    group,
    arp: isNoArp !== true,
    master,
    promisc: isPromisc === true,
    ifalias,
    ...(mac !== undefined && { mac }),
  };
  const names = LINK_PROPERTIES.filter((name) => desired[name] !== undefined && desired[name] !== present[name]);
  return { change: pick(desired, names), before: pick(present, names) };
}

const LINK_PROPERTIES = [
  'up',
  'mtu',
  'group',
  'mac',
  'arp',
  'master',
  'promisc',
  'ifalias',
] as const satisfies readonly (keyof LinkProperties)[];

function pick(from: LinkProperties, names: readonly (keyof LinkProperties)[]): LinkProperties {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}
