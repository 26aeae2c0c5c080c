import { type EniPlace, findSharedNics } from '../../dataplane/find-nic.ts';
import type { EniNetwork } from '../../dataplane/network.ts';
import { MAX_ENI_SLOT, TABLE_ENI_BASE } from '../../dataplane/numbers.ts';
import type { EniRecord } from '../journal/journal-content.ts';
import type { SupplyEni } from '../journal/supply.ts';
import type { HostLink } from '../node/host-link.ts';

/** Where the ENIs of a supply are on this node. */
type EniLocations = {
  /** ENIs whose link is on this node, in the order of the supply. */
  readonly present: readonly EniNetwork[];
  /** ENIs of the supply without a link. */
  readonly missing: readonly SupplyEni[];
  /** Records of ENIs that had none, or have another MAC; to be journalled before the kernel is changed. */
  readonly newRecords: readonly EniRecord[];
  /** ENIs for which no slot is left. */
  readonly refused: readonly SupplyEni[];
};

/**
 * Finds each ENI's link by its MAC, that of its hardware where it has one, and gives a new ENI its table and slot, which it
 * keeps for its life. Links of our own Pods are skipped, also interfaces that came back from one: a Pod must not become an
 * ENI by choosing a MAC. A link without a MAC of its own whose MAC was changed is found as the one of the last plan.
 * @param last ENIs of the last plan of this boot.
 */
export function locateEnis(
  enis: readonly SupplyEni[],
  links: readonly HostLink[],
  records: ReadonlyMap<string, EniRecord>,
  last: readonly EniPlace[],
): EniLocations {
  const candidates = links.map((link) => ({ ...link, address: link.mac }));
  const linkOf = findSharedNics(candidates, enis, last);
  const known = new Map(records);
  const present: EniNetwork[] = [];
  const missing: SupplyEni[] = [];
  const newRecords: EniRecord[] = [];
  const refused: SupplyEni[] = [];
  for (const eni of enis) {
    const link = linkOf.get(eni.eniId);
    if (link === undefined) {
      missing.push(eni);
      continue;
    }
    const before = known.get(eni.eniId);
    const record = before === undefined ? newRecord(eni, link, [...known.values()]) : { ...before, mac: eni.mac };
    if (record === undefined) {
      refused.push(eni);
      continue;
    }
    if (before?.mac !== record.mac) newRecords.push(record);
    known.set(eni.eniId, record);
    present.push(networkOf(eni, link, record));
  }
  return { present, missing, newRecords, refused };
}

/**
 * Base of the index that stands for a missing link of an ENI while Pods have its addresses; no link can have such an
 * index.
 */
const ABSENT_IFINDEX_BASE = 0x7fff_ff00;
const ABSENT_MTU_BYTES = 1500;

/**
 * Describes an ENI whose link is missing, so that the plan retains its Pods' routes and rules: their traffic to the
 * node goes on, and nothing has to be written when the link comes back.
 */
export function absentEni(eni: SupplyEni, record: EniRecord): EniNetwork {
  const link = { ifindex: ABSENT_IFINDEX_BASE + record.slot, ifname: `eni-gone-${record.slot}`, mtu: ABSENT_MTU_BYTES };
  return networkOf(eni, link, record);
}

function networkOf(eni: SupplyEni, link: HostLink, { table, slot }: EniRecord): EniNetwork {
  return {
    eniId: eni.eniId,
    mac: eni.mac,
    ifindex: link.ifindex,
    ifname: link.ifname,
    mtu: link.mtu,
    table,
    slot,
    addresses: eni.primary.map(({ ip, gateway }) => ({ ip, gateway })),
  };
}

/** Adds to each planned ENI the addresses that the supply has on it, for Pods that another program wires. */
export function withPodIps(
  planned: readonly EniNetwork[],
  supplied: readonly SupplyEni[],
  isLeased: (ip: string) => boolean,
): readonly EniNetwork[] {
  const addresses = new Map(supplied.map((eni) => [eni.eniId, eni.addresses.map(({ ip }) => ip)]));
  return planned.map((eni) => {
    const podIps = (addresses.get(eni.eniId) ?? []).filter((ip) => !isLeased(ip));
    return podIps.length === 0 ? eni : { ...eni, podIps };
  });
}

function newRecord(eni: SupplyEni, link: HostLink, others: readonly EniRecord[]): EniRecord | undefined {
  const tables = new Set(others.map(({ table }) => table));
  const slots = new Set(others.map(({ slot }) => slot));
  // An index can come again after 2^31 links, or when a netns is recreated; its old table may still be in use.
  let table = TABLE_ENI_BASE + link.ifindex;
  while (tables.has(table)) table++;
  let slot = 1;
  while (slots.has(slot)) slot++;
  return slot > MAX_ENI_SLOT ? undefined : { eniId: eni.eniId, mac: eni.mac, table, slot };
}
