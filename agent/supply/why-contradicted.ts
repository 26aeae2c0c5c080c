import { permanentMac } from '../../dataplane/find-nic.ts';
import type { EniRecord } from '../journal/journal-content.ts';
import type { Lease } from '../journal/lease.ts';
import type { Supply } from '../journal/supply.ts';

/** A shared ENI whose addresses Pods have, with the MAC of the link that it was set up on. */
export type EniInUse = Pick<EniRecord, 'eniId' | 'mac'>;

/**
 * Finds out why an ENI of a supply contradicts an ENI that Pods use: it is that ENI with another MAC, or another ENI with
 * that MAC. An ENI has one MAC for its life, so the supply was edited or read wrong, and the Pods would be cut off.
 * Undefined when nothing contradicts, and when the link of the ENI in use is gone: then the supply decides.
 */
export function whyContradicted(
  { eniId, mac }: EniInUse,
  inUse: readonly EniInUse[],
  links: readonly ({ readonly ifname: string } & Parameters<typeof permanentMac>[0])[],
): string | undefined {
  for (const used of inUse) {
    const isSameEni = used.eniId === eniId;
    if (isSameEni === (used.mac === mac)) continue;
    const link = links.find((link) => permanentMac(link) === used.mac);
    if (link === undefined) continue;
    return isSameEni
      ? `its MAC is ${used.mac} (${link.ifname}, which Pods use), and not ${mac}`
      : `its MAC ${mac} is that of ${used.eniId} (${link.ifname}, which Pods use)`;
  }
  return undefined;
}

/**
 * Lists the shared ENIs whose addresses Pods have, or may have: with the role `uplinks` it is not known which addresses
 * of the supply do.
 */
export function enisInUse({ role, supply, leases, eniRecords }: AddressesOnEnis): readonly EniInUse[] {
  const ofOthers = role === 'uplinks' ? (supply?.enis ?? []).filter(({ addresses }) => addresses.length > 0) : [];
  const used = new Set([...leases.values(), ...ofOthers].map(({ eniId }) => eniId));
  return [...eniRecords.values()].filter(({ eniId }) => used.has(eniId) && !isUnknownEni(eniId));
}

/** Leases, records of ENIs by id, and the supply in force. */
type AddressesOnEnis = {
  readonly role?: 'full' | 'uplinks';
  readonly supply?: Supply | undefined;
  readonly leases: ReadonlyMap<string, Lease>;
  readonly eniRecords: ReadonlyMap<string, EniRecord>;
};

/** Whether an ENI was found in the kernel and no supply named it: its id says nothing against one that does. */
function isUnknownEni(eniId: string): boolean {
  return eniId.startsWith('unknown-');
}
