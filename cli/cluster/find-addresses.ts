import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../dataplane/ip-prefix.ts';
import type { ClusterNec } from './cluster-facts.ts';

/** An address as a NodeENIConfig has it. */
export type Holding = {
  /** In its shortest spelling. */
  readonly ip: string;
  readonly nodeName: string;
  readonly eniId: string;
  readonly subnetId: string;
  /** own: the ENI's, no Pod gets it. shared: for Pods. exclusive: of an ENI that one Pod has. */
  readonly role: 'own' | 'shared' | 'exclusive';
  readonly isReleasing: boolean;
};

/** Lists every address of a NodeENIConfig once. Pure. */
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

/** Indexes every address of the cluster by its text: more than one holding is one too many. Pure. */
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
