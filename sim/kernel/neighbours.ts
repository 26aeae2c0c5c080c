import type { NeighMessage, NeighSpec } from '../../netlink/neigh-message.ts';
import { NUD_PERMANENT } from '../../netlink/uapi/neighbour.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { emit, type Family, type Link, linksOf, type Neigh, type Netns } from './netns.ts';
import { Refusal } from './refusal.ts';

/** Adds or changes a neighbour; the model knows those that a request made. @throws Refusal ENODEV, EINVAL, EEXIST */
export function addNeigh(netns: Netns, spec: NeighSpec, verb: 'add' | 'replace', by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV');
  if (spec.dst.includes(':') && link.conf[6].get('disable_ipv6') === '1')
    throw new Refusal('EINVAL', 'IPv6 is disabled on this device');
  const known = link.neighs.find(({ dst }) => dst === spec.dst);
  if (known !== undefined && verb === 'add') throw new Refusal('EEXIST');
  const neigh: Neigh = {
    ...{ family: spec.dst.includes(':') ? AF_INET6 : AF_INET, ifindex: link.ifindex, dst: spec.dst, type: RTN_UNICAST },
    ...{ state: spec.state ?? NUD_PERMANENT, flags: spec.flags ?? 0, unknown: [] },
    ...(spec.lladdr !== undefined && { lladdr: spec.lladdr }),
    ...(spec.protocol !== undefined && { protocol: spec.protocol }),
  };
  if (known === undefined) link.neighs.push(neigh);
  else link.neighs[link.neighs.indexOf(known)] = neigh;
  emit(netns, { kind: 'neigh', op: 'new', message: { ...neigh }, portid: by });
}

/** Deletes a neighbour. @throws Refusal ENODEV, ENOENT */
export function deleteNeigh(netns: Netns, spec: NeighSpec, by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV');
  const at = link.neighs.findIndex(({ dst }) => dst === spec.dst);
  const [neigh] = at < 0 ? [] : link.neighs.splice(at, 1);
  if (neigh === undefined) throw new Refusal('ENOENT');
  emit(netns, { kind: 'neigh', op: 'del', message: { ...neigh }, portid: by });
}

/** Removes the neighbours of one family, or of both, which the kernel tells. */
export function dropNeighs(link: Link, families: readonly Family[]): void {
  const isGone = ({ family }: Neigh): boolean => families.includes(family === AF_INET6 ? 6 : 4);
  const gone = link.neighs.filter(isGone);
  link.neighs = link.neighs.filter((neigh) => !isGone(neigh));
  for (const neigh of gone) emit(link.netns, { kind: 'neigh', op: 'del', message: { ...neigh }, portid: 0 });
}

/** Lists neighbours by link. */
export function neighsOf(
  netns: Netns,
  { ifindex, family }: { readonly ifindex?: number; readonly family?: number },
): readonly NeighMessage[] {
  return linksOf(netns)
    .filter((link) => ifindex === undefined || link.ifindex === ifindex)
    .flatMap(({ neighs }) => neighs)
    .filter((neigh) => family === undefined || family === 0 || neigh.family === family)
    .map((neigh) => ({ ...neigh }));
}
