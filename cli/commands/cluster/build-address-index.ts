import type { NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import type { ClusterNec } from './cluster-facts.ts';

/** An address in a NodeENIConfig. */
export type NecAddress = {
  /** The address in canonical form. */
  readonly ip: string;
  readonly nodeName: string;
  readonly eniId: string;
  readonly subnetId: string;
  /**
   * own: primary address of an ENI, for no Pod. shared: for Pods. exclusive: of an ENI that one Pod uses as a whole.
   */
  readonly role: 'own' | 'shared' | 'exclusive';
  readonly isReleasing: boolean;
};

/** Returns every address of a NodeENIConfig once. */
export function necAddresses(nec: ClusterNec): readonly NecAddress[] {
  return (nec.status.eniInfos ?? []).flatMap((eni) => eniAddresses(nec.key, eni));
}

function eniAddresses(nodeName: string, eni: NodeEniInfo): readonly NecAddress[] {
  const location = { nodeName, eniId: eni.eniID, subnetId: eni.subnetID ?? '' };
  const primaries = [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined);
  const role = eni.mode === 'direct-eni' ? 'exclusive' : 'own';
  const entries = new Map<string, NecAddress>();
  for (const { ip, pairedIP, state } of eni.addresses ?? []) {
    for (const one of pairedIP === undefined ? [ip] : [ip, pairedIP]) {
      const address = canonicalAddress(one);
      const isReleasing = state === 'Releasing' && entries.get(address)?.isReleasing !== false;
      entries.set(address, { ...location, ip: address, role: 'shared', isReleasing });
    }
  }
  for (const ip of primaries) {
    const address = canonicalAddress(ip);
    entries.set(address, { ...location, ip: address, role, isReleasing: false });
  }
  return [...entries.values()];
}

/** Returns the addresses of the cluster by their text. An address with more than one entry is a duplicate. */
export function buildAddressIndex(necs: readonly ClusterNec[]): ReadonlyMap<string, readonly NecAddress[]> {
  const index = new Map<string, NecAddress[]>();
  for (const nec of necs) {
    for (const entry of necAddresses(nec)) {
      const there = index.get(entry.ip);
      if (there === undefined) index.set(entry.ip, [entry]);
      else there.push(entry);
    }
  }
  return index;
}
