import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { KeptEni } from '../nec/kept-eni.ts';
import type { VpcEniEntry } from './vpc-eni-entry.ts';

/** An ENI in the object of a node that has the mark of a claim. */
export type MarkedEni = {
  readonly nodeName: string;
  readonly eni: NodeEniInfo;
  /** `namespace/name` */
  readonly claim: string;
};

/**
 * Converts static ENIs to the form that decisions about nodes use, by id: from VpcENIs, and for an ENI without a VpcENI
 * from the object of its node.
 */
export function keptEnisOf(
  entries: Iterable<VpcEniEntry>,
  marked: Iterable<MarkedEni> = [],
): ReadonlyMap<string, KeptEni> {
  const kept = new Map<string, KeptEni>();
  for (const { nodeName, eni, claim } of marked) {
    const { eniID: eniId, name = '', mac, primaryIP: primaryIp = '', subnetID: subnetId = '' } = eni;
    const { gateway = '', subnetCIDR: subnetCidr = '' } = eni;
    kept.set(eniId, {
      eniId,
      name,
      mac,
      primaryIp,
      subnetId,
      gateway,
      subnetCidr,
      claim,
      isAlone: false,
      isFree: false,
      nodeName,
    });
  }
  for (const entry of entries) {
    const { eniId, claim, mac } = entry;
    if (eniId === '' || claim === '' || mac === '') continue;
    kept.set(eniId, keptEniOf(entry));
  }
  return kept;
}

function keptEniOf(entry: VpcEniEntry): KeptEni {
  const { eniId, name, mac, primaryIp, subnetId, gateway, subnetCidr, claim, zone, phase, nodeName } = entry;
  const isWhole = [primaryIp, subnetId, gateway, subnetCidr].every((text) => text !== '');
  return {
    ...{ eniId, mac, primaryIp, subnetId, gateway, subnetCidr, claim },
    name: name === eniId ? '' : name,
    ...(zone === '' ? {} : { zone }),
    isAlone: phase === 'Available' || phase === 'Deleting',
    isFree: phase === 'Available' && !entry.isLeaving && isWhole,
    ...(nodeName === '' ? {} : { nodeName }),
  };
}
