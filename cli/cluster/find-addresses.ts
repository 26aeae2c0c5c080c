import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../dataplane/ip-prefix.ts';
import type { ClusterNec } from './cluster-facts.ts';

/** An address in a NodeENIConfig. */
export type Holding = {
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
export function holdingsOf(nec: ClusterNec): readonly Holding[] {
  return (nec.status.eniInfos ?? []).flatMap((eni) => holdingsOfEni(nec.key, eni));
}

function holdingsOfEni(nodeName: string, eni: NodeEniInfo): readonly Holding[] {
  const place = { nodeName, eniId: eni.eniID, subnetId: eni.subnetID ?? '' };
  const primaries = [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined);
  const role = eni.mode === 'direct-eni' ? 'exclusive' : 'own';
  const held = new Map<string, Holding>();
  for (const { ip, pairedIP, state } of eni.addresses ?? []) {
    for (const one of pairedIP === undefined ? [ip] : [ip, pairedIP]) {
      const address = canonicalAddress(one);
      const isReleasing = state === 'Releasing' && held.get(address)?.isReleasing !== false;
      held.set(address, { ...place, ip: address, role: 'shared', isReleasing });
    }
  }
  for (const ip of primaries) {
    const address = canonicalAddress(ip);
    held.set(address, { ...place, ip: address, role, isReleasing: false });
  }
  return [...held.values()];
}

/** Returns the addresses of the cluster by their text. An address with more than one entry is a duplicate. */
export function indexHoldings(necs: readonly ClusterNec[]): ReadonlyMap<string, readonly Holding[]> {
  const index = new Map<string, Holding[]>();
  for (const nec of necs) {
    for (const holding of holdingsOf(nec)) {
      const there = index.get(holding.ip);
      if (there === undefined) index.set(holding.ip, [holding]);
      else there.push(holding);
    }
  }
  return index;
}
