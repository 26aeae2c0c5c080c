import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import type { StaticEni } from '../decide/static-eni.ts';

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
export function staticEnisOf(
  entries: Iterable<VpcEniEntry>,
  marked: Iterable<MarkedEni> = [],
): ReadonlyMap<string, StaticEni> {
  const staticEnis = new Map<string, StaticEni>();
  for (const { nodeName, eni, claim } of marked) {
    const { eniID: eniId, name = '', mac, primaryIP: primaryIp = '', subnetID: subnetId = '' } = eni;
    const { gateway = '', subnetCIDR: subnetCidr = '' } = eni;
    staticEnis.set(eniId, {
      eniId,
      name,
      mac,
      primaryIp,
      subnetId,
      gateway,
      subnetCidr,
      claim,
      isDetached: false,
      isAttachable: false,
      nodeName,
    });
  }
  for (const entry of entries) {
    const { eniId, claim, mac } = entry;
    if (eniId === '' || claim === '' || mac === '') continue;
    staticEnis.set(eniId, toStaticEni(entry));
  }
  return staticEnis;
}

function toStaticEni(entry: VpcEniEntry): StaticEni {
  const { eniId, name, mac, primaryIp, subnetId, gateway, subnetCidr, claim, zone, phase, nodeName } = entry;
  const isComplete = [primaryIp, subnetId, gateway, subnetCidr].every((text) => text !== '');
  return {
    ...{ eniId, mac, primaryIp, subnetId, gateway, subnetCidr, claim },
    name: name === eniId ? '' : name,
    ...(zone === '' ? {} : { zone }),
    isDetached: phase === 'Available' || phase === 'Deleting',
    isAttachable: phase === 'Available' && !entry.isLeaving && isComplete,
    ...(nodeName === '' ? {} : { nodeName }),
  };
}
