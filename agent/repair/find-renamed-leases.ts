import type { Lease } from '../journal/lease.ts';
import type { HostLink } from '../node/host-link.ts';

/**
 * Finds the active leases whose host interface has another name now, and returns them with that name: another program
 * may rename a link, and its settings below /proc/sys, its place in a flowtable and what people search for go with the name. The index
 * and the MAC identify the link; one that has the index of a deleted link is another one.
 */
export function findRenamedLeases(leases: Iterable<Lease>, links: readonly HostLink[]): readonly Lease[] {
  const byIndex = new Map(links.map((link) => [link.ifindex, link]));
  return [...leases].flatMap((lease) => {
    const { state, hostVeth } = lease;
    const link = hostVeth?.ifindex === undefined ? undefined : byIndex.get(hostVeth.ifindex);
    if (state !== 'active' || hostVeth === undefined || link === undefined) return [];
    if (link.ifname === hostVeth.name || link.mac !== hostVeth.mac) return [];
    return [{ ...lease, hostVeth: { ...hostVeth, name: link.ifname } }];
  });
}
