import type { EniRecord, JournalContent } from '../../agent/journal/journal-content.ts';
import { findSharedNics } from '../../dataplane/find-nic.ts';
import type { EniNetwork } from '../../dataplane/network.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';

/** Base of interface indexes for ENIs without a link: no link can have such an index. */
const ABSENT_IFINDEX_BASE = 0x7fff_ff00;

/** MTU that the agent assumes for a link that it has never observed, bytes. */
const DEFAULT_MTU = 1500;

/**
 * Matches recorded ENIs with the present links, by MAC as the agent does: an ENI that was detached and attached again
 * has another interface index. A link without a MAC of its own whose MAC was changed is found by its index and name. An ENI
 * without a link stays in the plan, so that the routes of its Pods stay desired.
 */
export function matchRecordedEnis(enis: readonly EniNetwork[], links: readonly LinkMessage[]): readonly EniNetwork[] {
  const linkOf = findSharedNics(links, enis, enis);
  return enis.map((eni) => {
    const link = linkOf.get(eni.eniId);
    if (link === undefined) return { ...eni, ifindex: ABSENT_IFINDEX_BASE + eni.slot };
    // The same interface index: another MTU was set by another program. Another index: the link is new and its MTU is
    // right.
    const mtu = link.ifindex === eni.ifindex ? eni.mtu : link.mtu;
    return { ...eni, ifindex: link.ifindex, ifname: link.ifname, mtu };
  });
}

/** Builds ENIs from the journal alone: from the supply, and from the table and slot that are recorded for each ENI. */
export function enisOfJournal(journal: JournalContent, links: readonly LinkMessage[]): readonly EniNetwork[] {
  const records = new Map(journal.enis.map((record) => [record.eniId, record]));
  const linkOf = findSharedNics(links, journal.supply?.enis ?? [], []);
  return (journal.supply?.enis ?? []).flatMap((eni): readonly EniNetwork[] => {
    const record = records.get(eni.eniId);
    if (record === undefined) return [];
    const { ifindex, ifname, mtu } = linkOf.get(eni.eniId) ?? absentLink(record);
    const addresses = eni.primary.map(({ ip, gateway }) => ({ ip, gateway }));
    return [
      { eniId: eni.eniId, mac: eni.mac, ifindex, ifname, mtu, table: record.table, slot: record.slot, addresses },
    ];
  });
}

/** Returns whether an ENI is in the plan without a link. */
export function isAbsentEni(eni: Pick<EniNetwork, 'ifindex'>): boolean {
  return eni.ifindex >= ABSENT_IFINDEX_BASE;
}

/** Returns what stands for the link of an ENI that is not there. */
export function absentLink({ slot }: Pick<EniRecord, 'slot'>): Pick<EniNetwork, 'ifindex' | 'ifname' | 'mtu'> {
  return { ifindex: ABSENT_IFINDEX_BASE + slot, ifname: `eni-gone-${slot}`, mtu: DEFAULT_MTU };
}
