import type { EniRecord, JournalContent } from '../../agent/journal/journal-content.ts';
import { parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import type { EniNetwork } from '../../dataplane/network.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';

/** Stands in for the link of an ENI that is not here: an index that no link can have. */
const GONE_IFINDEX_BASE = 0x7fff_ff00;

/** What the agent assumes of a link that it has never seen. Bytes. */
const UNSEEN_MTU = 1500;

/**
 * Finds recorded ENIs among the links of this moment, by MAC as the agent does: an ENI that was detached and came back
 * has another index. One without a link keeps its place in the plan, so that its Pods' routes stay wanted.
 */
export function placeRecordedEnis(enis: readonly EniNetwork[], links: readonly LinkMessage[]): readonly EniNetwork[] {
  const byMac = linksByMac(links);
  return enis.map((eni) => {
    const link = byMac.get(eni.mac);
    if (link === undefined) return { ...eni, ifindex: GONE_IFINDEX_BASE + eni.slot };
    // The same link with another MTU was changed by somebody; another link is a new one, and has the MTU it should have.
    const mtu = link.ifindex === eni.ifindex ? eni.mtu : link.mtu;
    return { ...eni, ifindex: link.ifindex, ifname: link.ifname, mtu };
  });
}

/** Makes ENIs of what the journal alone has: the supply, and the table and slot that were decided for each ENI. */
export function enisOfJournal(journal: JournalContent, links: readonly LinkMessage[]): readonly EniNetwork[] {
  const records = new Map(journal.enis.map((record) => [record.eniId, record]));
  const byMac = linksByMac(links);
  return (journal.supply?.enis ?? []).flatMap((eni): readonly EniNetwork[] => {
    const record = records.get(eni.eniId);
    if (record === undefined) return [];
    const { ifindex, ifname, mtu } = byMac.get(eni.mac) ?? unseenLink(record);
    const addresses = eni.primary.map(({ ip, gateway }) => ({ ip, gateway }));
    return [
      { eniId: eni.eniId, mac: eni.mac, ifindex, ifname, mtu, table: record.table, slot: record.slot, addresses },
    ];
  });
}

/** Tells whether an ENI stands in the plan without a link. */
export function isGoneEni(eni: Pick<EniNetwork, 'ifindex'>): boolean {
  return eni.ifindex >= GONE_IFINDEX_BASE;
}

function unseenLink({ slot }: EniRecord): Pick<EniNetwork, 'ifindex' | 'ifname' | 'mtu'> {
  return { ifindex: GONE_IFINDEX_BASE + slot, ifname: `eni-gone-${slot}`, mtu: UNSEEN_MTU };
}

/** A Pod must not become an ENI by choosing a MAC; hardware goes before what is built on it, then the oldest link. */
function linksByMac(links: readonly LinkMessage[]): ReadonlyMap<string, LinkMessage> {
  const byMac = new Map<string, LinkMessage>();
  const inOrder = links.toSorted(
    (a, b) => Number(a.kind !== undefined) - Number(b.kind !== undefined) || a.ifindex - b.ifindex,
  );
  for (const link of inOrder) {
    if (link.address === undefined || parseHostVethAlias(link.ifalias ?? '') !== undefined) continue;
    if (!byMac.has(link.address)) byMac.set(link.address, link);
  }
  return byMac;
}
